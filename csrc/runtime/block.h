// SPDX-License-Identifier: BSD-3-Clause
// What the device allocator manages: blocks, which are parts of a segment, a range that the
// driver's malloc() returned. Plain data without a lock; arena.h says who may touch it.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <compare>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace puone {

class Arena;
struct Block;

// Smallest first, so that lower_bound(size) is the best fit. Stream and private pool are not part
// of the order: each pair of them has an arena of its own.
struct BlockOrder {
  using is_transparent = void;
  bool operator()(const Block* a, const Block* b) const noexcept;
  bool operator()(const Block* a, size_t size) const noexcept;
};

// The free blocks of an arena for small (<= 1 MiB) or for large requests: they are kept apart
// against fragmentation.
struct BlockPool {
  explicit BlockPool(bool small_) : small(small_) {}
  const bool small;
  std::set<Block*, BlockOrder> free;
};

enum class BlockState : uint8_t {
  Free,      // in its pool
  Allocated, // owned by a caller
  Pending,   // freed; waits for the streams of recordStream(), or its use there cannot be tracked
};

// Blocks of one segment form a list in address order; neighbours that are both free are merged.
struct Block {
  char* ptr = nullptr;
  size_t size = 0;      // bytes, a multiple of 512
  size_t requested = 0; // bytes the caller asked for
  Arena* arena = nullptr;
  BlockPool* pool = nullptr;
  BlockState state = BlockState::Free;
  int pending_events = 0; // events that must complete before the block is free
  uint64_t freed_at = 0;  // DeviceCache::now() when it became free, for garbage collection
  Block* prev = nullptr;
  Block* next = nullptr;
  std::vector<c10::StreamId> users; // other streams, from recordStream()
  // Streams whose use of the block has no event that can be queried: it is not reused.
  std::vector<c10::StreamId> untracked;
  // The stack of the allocation, if the history records stacks.
  std::shared_ptr<c10::GatheredContext> context;
  // The block's place in its pool while it is not there: reuse allocates no host memory.
  std::set<Block*, BlockOrder>::node_type node;

  bool isSplit() const noexcept {
    return prev != nullptr || next != nullptr;
  }
};

inline bool BlockOrder::operator()(const Block* a, const Block* b) const noexcept {
  return a->size != b->size ? a->size < b->size : a->ptr < b->ptr;
}

inline bool BlockOrder::operator()(const Block* a, size_t size) const noexcept {
  return a->size < size;
}

} // namespace puone
