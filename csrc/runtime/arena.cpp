// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/arena.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/block_size.h"
#include "runtime/device_cache.h"

namespace puone {

// ---- free blocks ----

Block* Arena::take(size_t size, SplitChange& change) {
  BlockPool& pool = poolFor(isSmall(size));
  const auto it = pool.free.lower_bound(size);
  if (it == pool.free.end() || !mayServe((*it)->size, size)) {
    return nullptr;
  }
  Block* block = *it;
  block->node = pool.free.extract(it);
  if (block->isSplit()) {
    --change.blocks;
    change.bytes -= static_cast<int64_t>(block->size);
  }
  return allocate(block, size, change);
}

Block* Arena::allocate(Block* block, size_t size, SplitChange& change) {
  if (shouldSplit(block->pool->small, block->size, size)) {
    splitAt(block, size);
    insertFree(block->next);
    ++change.blocks;
    change.bytes += static_cast<int64_t>(block->next->size);
  }
  block->state = BlockState::Allocated;
  return block;
}

void Arena::makeFree(Block* block, SplitChange& change) {
  BlockPool& pool = *block->pool;
  const auto leavePool = [&](Block* neighbour) {
    neighbour->node = pool.free.extract(neighbour);
    --change.blocks;
    change.bytes -= static_cast<int64_t>(neighbour->size);
  };
  const auto isFree = [](const Block* neighbour) {
    return neighbour != nullptr && neighbour->state == BlockState::Free;
  };
  if (isFree(block->next)) {
    leavePool(block->next);
    absorbNext(block);
  }
  if (isFree(block->prev)) {
    block = block->prev;
    leavePool(block);
    absorbNext(block);
  }
  insertFree(block);
  if (block->isSplit()) {
    ++change.blocks;
    change.bytes += static_cast<int64_t>(block->size);
  }
}

void Arena::insertFree(Block* block) {
  block->state = BlockState::Free;
  block->requested = 0;
  block->context = nullptr;
  block->freed_at = cache.now();
  block->pool->free.insert(std::move(block->node));
}

// Cuts `block` after `size` bytes; the rest becomes a block of its own, in no pool yet.
void Arena::splitAt(Block* block, size_t size) {
  Block* rest = newBlock();
  rest->ptr = block->ptr + size;
  rest->size = block->size - size;
  rest->pool = block->pool;
  rest->prev = block;
  rest->next = block->next;
  if (rest->next != nullptr) {
    rest->next->prev = rest;
  }
  block->next = rest;
  block->size = size;
}

// The first block of a segment stays the first.
void Arena::absorbNext(Block* block) {
  Block* next = block->next;
  block->size += next->size;
  block->next = next->next;
  if (block->next != nullptr) {
    block->next->prev = block;
  }
  dropBlock(next);
}

Block* Arena::newBlock() {
  if (!spare_.empty()) {
    Block* block = spare_.back();
    spare_.pop_back();
    return block;
  }
  Block* block = &storage_.emplace_back();
  block->arena = this;
  // Only an insertion makes a node.
  std::set<Block*, BlockOrder> maker;
  block->node = maker.extract(maker.insert(block).first);
  spare_.reserve(storage_.size()); // so that dropBlock() cannot fail
  return block;
}

void Arena::dropBlock(Block* block) {
  block->prev = block->next = nullptr;
  block->state = BlockState::Free;
  block->requested = 0;
  block->context = nullptr;
  spare_.push_back(block);
}

// ---- segments ----

Block* Arena::newSegment(const Segment& segment) {
  Block* block = newBlock();
  block->ptr = static_cast<char*>(segment.ptr);
  block->size = segment.bytes;
  block->pool = &poolFor(segment.small);
  segments_.insert(block);
  return block;
}

void Arena::addSegment(const Segment& segment) {
  insertFree(newSegment(segment));
}

Block* Arena::takeFrom(const Segment& segment, size_t size, SplitChange& change) {
  return allocate(newSegment(segment), size, change);
}

void Arena::remove(Block* block, std::vector<Segment>& removed) {
  removed.push_back({this, block->ptr, block->size, block->pool->small});
  segments_.erase(block);
  block->node = block->pool->free.extract(block);
  dropBlock(block);
}

void Arena::removeSegments(std::vector<Segment>& removed) {
  for (BlockPool* pool : {&small_, &large_}) {
    for (auto it = pool->free.begin(); it != pool->free.end();) {
      Block* block = *it++;
      if (!block->isSplit()) {
        remove(block, removed);
      }
    }
  }
}

void Arena::removeIdle(uint64_t time, std::vector<Segment>& removed) {
  for (auto it = large_.free.begin(); it != large_.free.end();) {
    Block* block = *it++;
    if (!block->isSplit() && block->freed_at <= time) {
      remove(block, removed);
    }
  }
}

void Arena::removeOversize(size_t bytes, std::vector<Segment>& removed) {
  const size_t least = maxSplitSize();
  const auto suffices = std::find_if(
      large_.free.lower_bound(std::max(bytes, least)), large_.free.end(), [](const Block* block) {
        return !block->isSplit();
      });
  if (suffices != large_.free.end()) {
    remove(*suffices, removed);
    return;
  }
  size_t sum = 0;
  std::vector<Block*> largest;
  for (auto it = large_.free.rbegin(); it != large_.free.rend() && sum < bytes; ++it) {
    Block* block = *it;
    if (block->size < least) break;
    if (block->isSplit()) continue;
    largest.push_back(block);
    sum += block->size;
  }
  if (sum < bytes) return;
  for (Block* block : largest) remove(block, removed);
}

void Arena::listIdle(std::vector<std::pair<uint64_t, size_t>>& idle) const {
  for (const Block* block : large_.free) {
    if (!block->isSplit()) {
      idle.emplace_back(block->freed_at, block->size);
    }
  }
}

void Arena::snapshot(std::vector<c10::CachingDeviceAllocator::SegmentInfo>& out) const {
  for (const Block* head : segments_) {
    c10::CachingDeviceAllocator::SegmentInfo segment;
    segment.device = stream.deviceIndex();
    segment.address = reinterpret_cast<size_t>(head->ptr);
    segment.stream = stream.handle();
    segment.is_large = !head->pool->small;
    segment.owner_private_pool_id = mempool;
    for (const Block* block = head; block != nullptr; block = block->next) {
      c10::CachingDeviceAllocator::BlockInfo info;
      info.size = block->size;
      info.allocated = block->state == BlockState::Allocated;
      info.active = block->state != BlockState::Free;
      info.requested_size = info.active ? block->requested : 0;
      info.context_when_allocated = block->context;
      segment.total_size += info.size;
      segment.allocated_size += info.allocated ? info.size : 0;
      segment.active_size += info.active ? info.size : 0;
      segment.requested_size += info.requested_size;
      segment.blocks.push_back(std::move(info));
    }
    out.push_back(std::move(segment));
  }
}

} // namespace puone
