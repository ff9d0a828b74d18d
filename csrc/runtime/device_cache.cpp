// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/device_cache.h"

#include <c10/core/AllocatorConfig.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <tuple>

#include "runtime/device.h"
#include "runtime/driver.h"
#include "runtime/primary_context.h"

namespace puone {

using c10::CachingAllocator::AcceleratorAllocatorConfig;
using c10::CachingAllocator::StatType;
namespace cfg = c10::CachingAllocator; // kMinBlockSize and friends: CUDA's policy, shared by c10

namespace {

size_t roundUp(size_t size, size_t multiple) {
  return multiple * ((size + multiple - 1) / multiple);
}

// Bytes a request occupies: a multiple of 512, or a power-of-two division if so configured.
size_t blockSize(size_t requested) {
  if (requested < cfg::kMinBlockSize) {
    return cfg::kMinBlockSize;
  }
  const size_t divisions = AcceleratorAllocatorConfig::roundup_power2_divisions(requested);
  if (divisions > 1 && requested > cfg::kMinBlockSize * divisions) {
    const size_t power = std::bit_floor(requested);
    return power == requested ? requested : roundUp(requested, power / divisions);
  }
  return roundUp(requested, cfg::kMinBlockSize);
}

// Bytes to ask the driver for when a request of `size` finds no cached block.
size_t segmentSize(size_t size) {
  if (size <= cfg::kSmallSize) {
    return cfg::kSmallBuffer;
  }
  if (size < cfg::kMinLargeAlloc) {
    return AcceleratorAllocatorConfig::large_segment_size();
  }
  return roundUp(size, cfg::kRoundLarge);
}

std::string formatBytes(uint64_t bytes) {
  const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  size_t unit = 0;
  double value = static_cast<double>(bytes);
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof(text), unit == 0 ? "%.0f %s" : "%.2f %s", value, units[unit]);
  return text;
}

template <typename F>
void update(
    c10::CachingAllocator::StatArray& array, const c10::CachingAllocator::StatTypes& types, F&& f) {
  c10::CachingAllocator::for_each_selected_stat_type(types, [&](size_t type) { f(array[type]); });
}

void increase(
    c10::CachingAllocator::StatArray& array,
    const c10::CachingAllocator::StatTypes& types,
    size_t amount) {
  update(array, types, [&](auto& stat) { stat.increase(amount); });
}

void decrease(
    c10::CachingAllocator::StatArray& array,
    const c10::CachingAllocator::StatTypes& types,
    size_t amount) {
  update(array, types, [&](auto& stat) { stat.decrease(amount); });
}

int64_t current(const c10::CachingAllocator::StatArray& array) {
  return array[static_cast<size_t>(StatType::AGGREGATE)].current;
}

Stream streamOf(c10::DeviceIndex device, c10::StreamId id) {
  return Stream(c10::Stream(c10::Stream::UNSAFE, c10::Device(kDeviceType, device), id));
}

} // namespace

bool BlockOrder::operator()(const Block* a, const Block* b) const noexcept {
  return std::tie(a->stream, a->size, a->ptr) < std::tie(b->stream, b->size, b->ptr);
}

BlockPool& DeviceCache::poolFor(size_t size) {
  return size <= cfg::kSmallSize ? small_ : large_;
}

DeviceCache::StatTypes DeviceCache::statTypes(const BlockPool& pool) const {
  StatTypes types{};
  types[static_cast<size_t>(StatType::AGGREGATE)] = true;
  types[static_cast<size_t>(pool.small ? StatType::SMALL_POOL : StatType::LARGE_POOL)] = true;
  return types;
}

void* DeviceCache::allocate(size_t bytes, c10::StreamId stream) {
  // Rounding up could wrap around: no device has half of the address space.
  TORCH_CHECK_WITH(
      OutOfMemoryError,
      bytes < (size_t{1} << 62),
      "puone out of memory. Tried to allocate ",
      formatBytes(bytes),
      ", more than any device can address.");
  std::lock_guard<std::mutex> lock(mutex_);
  processEvents(/*wait=*/false);

  const size_t size = blockSize(bytes);
  BlockPool& pool = poolFor(size);
  Block* block = findFree(size, stream, pool);
  if (block == nullptr) {
    block = allocateSegment(size, stream, pool);
  }
  if (block == nullptr) {
    throwOutOfMemory(bytes, size);
  }
  if (shouldSplit(*block, size)) {
    block = split(block, size);
  }
  block->allocated = true;
  block->requested = bytes;
  live_.emplace(block->ptr, block);

  const auto types = statTypes(pool);
  increase(stats_.allocation, types, 1);
  increase(stats_.allocated_bytes, types, block->size);
  increase(stats_.active, types, 1);
  increase(stats_.active_bytes, types, block->size);
  increase(stats_.requested_bytes, types, bytes);
  if (block->size >= AcceleratorAllocatorConfig::max_split_size()) {
    stats_.oversize_allocations.increase(1);
  }
  return block->ptr;
}

void DeviceCache::free(void* ptr) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = live_.find(ptr);
  if (found == live_.end()) {
    return;
  }
  Block* block = found->second;
  block->allocated = false;

  const auto types = statTypes(*block->pool);
  decrease(stats_.allocation, types, 1);
  decrease(stats_.allocated_bytes, types, block->size);
  if (block->size >= AcceleratorAllocatorConfig::max_split_size()) {
    stats_.oversize_allocations.decrease(1);
  }
  if (block->users.empty()) {
    makeFree(block);
  } else {
    recordEvents(block);
  }
}

void DeviceCache::recordStream(void* ptr, c10::StreamId stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = live_.find(ptr);
  // Memory that is not ours (from_blob, another device) has nothing to be recorded on.
  if (found != live_.end() && found->second->stream != stream) {
    found->second->users.insert(stream);
  }
}

// ---- free blocks ----

Block* DeviceCache::findFree(size_t size, c10::StreamId stream, BlockPool& pool) {
  if (AcceleratorAllocatorConfig::garbage_collection_threshold() > 0) {
    for (Block* block : pool.free) {
      ++block->gc_age;
    }
  }
  Block key{.stream = stream, .ptr = nullptr, .size = size, .pool = &pool};
  const auto it = pool.free.lower_bound(&key);
  if (it == pool.free.end() || (*it)->stream != stream) {
    return nullptr;
  }
  Block* block = *it;
  // A block too large to be split would waste what the request leaves over.
  const size_t max_split = AcceleratorAllocatorConfig::max_split_size();
  if (size < max_split && block->size >= max_split) {
    return nullptr;
  }
  if (size >= max_split &&
      block->size >= size + AcceleratorAllocatorConfig::max_non_split_rounding_size()) {
    return nullptr;
  }
  pool.free.erase(it);
  block->gc_age = 0;
  if (block->isSplit()) {
    const auto types = statTypes(pool);
    decrease(stats_.inactive_split, types, 1);
    decrease(stats_.inactive_split_bytes, types, block->size);
  }
  return block;
}

bool DeviceCache::shouldSplit(const Block& block, size_t size) const {
  const size_t remaining = block.size - size;
  if (block.pool->small) {
    return remaining >= cfg::kMinBlockSize;
  }
  return size < AcceleratorAllocatorConfig::max_split_size() && remaining > cfg::kSmallSize;
}

// Cuts `size` bytes off the front; the rest becomes a free block of its own.
Block* DeviceCache::split(Block* block, size_t size) {
  auto* rest = new Block{
      .stream = block->stream,
      .ptr = block->ptr + size,
      .size = block->size - size,
      .pool = block->pool,
      .prev = block,
      .next = block->next};
  if (rest->next != nullptr) {
    rest->next->prev = rest;
  }
  block->next = rest;
  block->size = size;
  block->pool->free.insert(rest);

  const auto types = statTypes(*block->pool);
  increase(stats_.inactive_split, types, 1);
  increase(stats_.inactive_split_bytes, types, rest->size);
  return block;
}

void DeviceCache::makeFree(Block* block) {
  const auto types = statTypes(*block->pool);
  decrease(stats_.active, types, 1);
  decrease(stats_.active_bytes, types, block->size);
  decrease(stats_.requested_bytes, types, block->requested);
  live_.erase(block->ptr);

  for (Block* neighbour : {block->prev, block->next}) {
    if (const size_t merged = mergeWith(block, neighbour); merged > 0) {
      decrease(stats_.inactive_split, types, 1);
      decrease(stats_.inactive_split_bytes, types, merged);
    }
  }
  block->pool->free.insert(block);
  if (block->isSplit()) {
    increase(stats_.inactive_split, types, 1);
    increase(stats_.inactive_split_bytes, types, block->size);
  }
}

// Absorbs a free neighbour into `block`; returns the neighbour's size, 0 if it is in use.
size_t DeviceCache::mergeWith(Block* block, Block* neighbour) {
  if (neighbour == nullptr || neighbour->allocated || neighbour->pending_events > 0) {
    return 0;
  }
  if (neighbour == block->prev) {
    block->ptr = neighbour->ptr;
    block->prev = neighbour->prev;
    if (block->prev != nullptr) {
      block->prev->next = block;
    }
  } else {
    block->next = neighbour->next;
    if (block->next != nullptr) {
      block->next->prev = block;
    }
  }
  const size_t size = neighbour->size;
  block->size += size;
  block->pool->free.erase(neighbour);
  delete neighbour;
  return size;
}

// ---- segments ----

// Each step frees more than the one before; the first that lets the driver succeed ends the search.
Block* DeviceCache::allocateSegment(size_t size, c10::StreamId stream, BlockPool& pool) {
  const size_t bytes = segmentSize(size);
  if (AcceleratorAllocatorConfig::garbage_collection_threshold() > 0) {
    collectGarbage();
  }
  void* ptr = driverMalloc(bytes);
  if (ptr == nullptr && releaseAtLeast(bytes, stream, pool)) {
    ptr = driverMalloc(bytes);
  }
  if (ptr == nullptr) {
    ++stats_.num_alloc_retries;
    releaseCached();
    ptr = driverMalloc(bytes);
  }
  if (ptr == nullptr) {
    return nullptr;
  }
  const auto types = statTypes(pool);
  increase(stats_.segment, types, 1);
  increase(stats_.reserved_bytes, types, bytes);
  if (bytes >= AcceleratorAllocatorConfig::max_split_size()) {
    stats_.oversize_segments.increase(1);
  }
  return new Block{.stream = stream, .ptr = static_cast<char*>(ptr), .size = bytes, .pool = &pool};
}

// NULL when the device, or the fraction of it that we may take, is full; throws on anything else.
void* DeviceCache::driverMalloc(size_t bytes) {
  if (limit_ > 0 && static_cast<size_t>(current(stats_.reserved_bytes)) + bytes > limit_) {
    return nullptr;
  }
  void* ptr = nullptr;
  const puone_status status = hal().malloc(device_, bytes, &ptr);
  if (status == PUONE_OUT_OF_MEMORY) {
    return nullptr;
  }
  PUONE_CHECK_STATUS(status, "malloc");
  primaryContextFlag(device_).store(true);
  ++stats_.num_device_alloc;

  // Once per segment: a driver that puts memory on another device would corrupt silently.
  const auto where = pointerAttributes(ptr);
  TORCH_CHECK(
      where.kind == PUONE_MEMORY_DEVICE && where.device == device_,
      "puone driver error in malloc: memory asked of puone:",
      static_cast<int>(device_),
      " was placed on puone:",
      where.device);
  return ptr;
}

void DeviceCache::releaseSegment(Block* block) {
  PUONE_CHECK(hal().free(block->ptr));
  ++stats_.num_device_free;
  const auto types = statTypes(*block->pool);
  decrease(stats_.segment, types, 1);
  decrease(stats_.reserved_bytes, types, block->size);
  if (block->size >= AcceleratorAllocatorConfig::max_split_size()) {
    stats_.oversize_segments.decrease(1);
  }
  block->pool->free.erase(block);
  delete block;
}

// Releases just enough oversize segments of the stream for a request of `size`, if that can do.
bool DeviceCache::releaseAtLeast(size_t size, c10::StreamId stream, BlockPool& pool) {
  const size_t max_split = AcceleratorAllocatorConfig::max_split_size();
  if (max_split == std::numeric_limits<size_t>::max()) {
    return false;
  }
  Block key{.stream = stream, .ptr = nullptr, .size = std::max(size, max_split), .pool = &pool};
  size_t released = 0;
  for (auto it = pool.free.lower_bound(&key); it != pool.free.end() && (*it)->stream == stream;) {
    Block* block = *it++;
    if (!block->isSplit()) {
      released += block->size;
      releaseSegment(block);
      if (released >= size) {
        return true;
      }
    }
  }
  return false;
}

// Releases every segment that is wholly free. Waits for the streams that recordStream() announced.
void DeviceCache::releaseCached() {
  processEvents(/*wait=*/true);
  for (BlockPool* pool : {&small_, &large_}) {
    for (auto it = pool->free.begin(); it != pool->free.end();) {
      Block* block = *it++;
      if (!block->isSplit()) {
        releaseSegment(block);
      }
    }
  }
}

// Releases the segments unused for longest until the reserved share is below the threshold.
void DeviceCache::collectGarbage() {
  const uint64_t total = memoryInfo(device_).total;
  const double threshold = AcceleratorAllocatorConfig::garbage_collection_threshold();
  const auto allowed = static_cast<int64_t>(
      threshold * static_cast<double>(limit_ > 0 ? limit_ : static_cast<size_t>(total)));
  std::vector<Block*> idle;
  for (Block* block : large_.free) {
    if (!block->isSplit() && block->gc_age > 0) {
      idle.push_back(block);
    }
  }
  std::sort(idle.begin(), idle.end(), [](auto* a, auto* b) { return a->gc_age > b->gc_age; });
  for (Block* block : idle) {
    if (current(stats_.reserved_bytes) <= allowed) {
      return;
    }
    releaseSegment(block);
  }
}

void DeviceCache::throwOutOfMemory(size_t requested, size_t size) {
  ++stats_.num_ooms;
  const auto [unused, total] = memoryInfo(device_);
  const auto allocated = static_cast<uint64_t>(current(stats_.allocated_bytes));
  const auto reserved = static_cast<uint64_t>(current(stats_.reserved_bytes));
  c10::reportOutOfMemoryToProfiler(
      static_cast<int64_t>(size), allocated, reserved, c10::Device(kDeviceType, device_));
  TORCH_CHECK_WITH(
      OutOfMemoryError,
      false,
      "puone out of memory. Tried to allocate ",
      formatBytes(requested),
      ". puone:",
      static_cast<int>(device_),
      " has a total capacity of ",
      formatBytes(total),
      " of which ",
      formatBytes(unused),
      " is free. ",
      limit_ > 0 ? c10::str(formatBytes(limit_), " allowed; ") : std::string(),
      "Of the allocated memory ",
      formatBytes(allocated),
      " is allocated by PyTorch, and ",
      formatBytes(reserved - allocated),
      " is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try "
      "setting PYTORCH_ALLOC_CONF=max_split_size_mb to avoid fragmentation.");
}

// ---- other streams ----

void DeviceCache::recordEvents(Block* block) {
  for (const c10::StreamId user : block->users) {
    Event event;
    event.record(streamOf(device_, user));
    ++block->pending_events;
    events_.emplace_back(std::move(event), block);
  }
  block->users.clear();
}

// Frees the blocks whose events have passed. Events of different streams complete in any order, so
// all are looked at.
void DeviceCache::processEvents(bool wait) {
  for (auto it = events_.begin(); it != events_.end();) {
    // Either call may throw a stream's asynchronous error; the entry then stays for the next time.
    if (wait) {
      it->first.synchronize();
    } else if (!it->first.query()) {
      ++it;
      continue;
    }
    Block* block = it->second;
    it = events_.erase(it);
    if (--block->pending_events == 0) {
      makeFree(block);
    }
  }
}

// ---- the rest ----

void DeviceCache::emptyCache() {
  std::lock_guard<std::mutex> lock(mutex_);
  releaseCached();
}

c10::CachingDeviceAllocator::DeviceStats DeviceCache::stats() {
  std::lock_guard<std::mutex> lock(mutex_);
  stats_.max_split_size = static_cast<int64_t>(AcceleratorAllocatorConfig::max_split_size());
  return stats_;
}

namespace {

template <typename F>
void forEachStat(c10::CachingDeviceAllocator::DeviceStats& stats, F&& f) {
  for (auto* array :
       {&stats.allocation,
        &stats.segment,
        &stats.active,
        &stats.inactive_split,
        &stats.allocated_bytes,
        &stats.reserved_bytes,
        &stats.active_bytes,
        &stats.inactive_split_bytes,
        &stats.requested_bytes}) {
    std::for_each(array->begin(), array->end(), f);
  }
  f(stats.oversize_allocations);
  f(stats.oversize_segments);
}

} // namespace

void DeviceCache::resetAccumulatedStats() {
  std::lock_guard<std::mutex> lock(mutex_);
  forEachStat(stats_, [](auto& stat) { stat.reset_accumulated(); });
  stats_.num_alloc_retries = 0;
  stats_.num_ooms = 0;
  stats_.num_device_alloc = 0;
  stats_.num_device_free = 0;
}

void DeviceCache::resetPeakStats() {
  std::lock_guard<std::mutex> lock(mutex_);
  forEachStat(stats_, [](auto& stat) { stat.reset_peak(); });
}

void DeviceCache::setMemoryFraction(double fraction) {
  const uint64_t total = memoryInfo(device_).total;
  std::lock_guard<std::mutex> lock(mutex_);
  limit_ = fraction >= 1.0 ? 0 : static_cast<size_t>(fraction * static_cast<double>(total));
}

void DeviceCache::snapshot(std::vector<c10::CachingDeviceAllocator::SegmentInfo>& out) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::set<const Block*, BlockOrder> heads;
  const auto collect = [&](const Block* block) {
    while (block->prev != nullptr) {
      block = block->prev;
    }
    heads.insert(block);
  };
  for (const BlockPool* pool : {&small_, &large_}) {
    std::for_each(pool->free.begin(), pool->free.end(), collect);
  }
  for (const auto& [ptr, block] : live_) {
    collect(block);
  }
  for (const Block* head : heads) {
    c10::CachingDeviceAllocator::SegmentInfo segment;
    segment.device = device_;
    segment.address = reinterpret_cast<size_t>(head->ptr);
    segment.stream = streamOf(device_, head->stream).handle();
    segment.is_large = !head->pool->small;
    for (const Block* block = head; block != nullptr; block = block->next) {
      c10::CachingDeviceAllocator::BlockInfo info;
      info.size = block->size;
      info.allocated = block->allocated;
      info.active = block->allocated || block->pending_events > 0;
      info.requested_size = info.active ? block->requested : 0;
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
