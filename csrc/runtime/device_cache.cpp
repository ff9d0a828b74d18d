// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/device_cache.h"

#include <c10/core/AllocatorConfig.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <optional>
#include <utility>

#include "runtime/block_size.h"
#include "runtime/capture.h"
#include "runtime/device.h"
#include "runtime/driver.h"
#include "runtime/launch_debugging.h"
#include "runtime/out_of_memory.h"
#include "runtime/shared_storage.h"

namespace puone {

using c10::CachingAllocator::AcceleratorAllocatorConfig;

namespace {

Stream streamOf(c10::DeviceIndex device, c10::StreamId id) {
  return Stream(c10::Stream(c10::Stream::UNSAFE, c10::Device(kDeviceType, device), id));
}

bool collectsGarbage() {
  return AcceleratorAllocatorConfig::garbage_collection_threshold() > 0;
}

} // namespace

// ---- arenas ----

Arena& DeviceCache::arenaOf(const Stream& stream) {
  if (const auto capture = captureOf(stream)) return pools_.arenaOf(*this, stream, capture->pool);
  const auto id = static_cast<uint64_t>(stream.id());
  Arena* arena = id < kDirect ? direct_[id].load(std::memory_order_acquire) : nullptr;
  return C10_LIKELY(arena != nullptr) ? *arena : createArena(stream);
}

Arena& DeviceCache::createArena(const Stream& stream) {
  std::lock_guard<std::mutex> lock(arenas_mutex_);
  auto& arena = arenas_[stream.id()];
  if (arena == nullptr) {
    arena = std::make_unique<Arena>(*this, stream, c10::MempoolId_t{0, 0});
  }
  if (const auto id = static_cast<uint64_t>(stream.id()); id < kDirect) {
    direct_[id].store(arena.get(), std::memory_order_release);
  }
  return *arena;
}

// Arenas are never destroyed.
std::vector<Arena*> DeviceCache::arenas() {
  std::lock_guard<std::mutex> lock(arenas_mutex_);
  std::vector<Arena*> all;
  for (const auto& [id, arena] : arenas_) {
    all.push_back(arena.get());
  }
  return all;
}

// Those whose free memory no graph needs.
std::vector<Arena*> DeviceCache::releasableArenas() {
  auto releasable = arenas();
  pools_.listRetired(releasable);
  return releasable;
}

// ---- allocation ----

Block* DeviceCache::allocate(size_t bytes, const Stream& stream) {
  const Request request{blockSize(bytes), bytes, history_.gather(RecordContext::STATE)};
  Arena& arena = arenaOf(stream);
  if (C10_UNLIKELY(history_.active())) {
    stream.handle(); // creates the stream that entries name, while nothing has changed
  }
  if (C10_UNLIKELY(collectsGarbage())) {
    clock_.fetch_add(1, std::memory_order_relaxed);
  }
  Block* block = allocateCached(arena, request);
  if (block == nullptr && collectSentStorages()) {
    block = allocateCached(arena, request);
  }
  if (block == nullptr) {
    block = allocateSegment(arena, request);
  }
  if (block == nullptr) {
    runOutOfMemory(arena, request);
  }
  return block;
}

Block* DeviceCache::allocateCached(Arena& arena, const Request& request) {
  std::lock_guard<std::mutex> lock(arena.mutex);
  if (!arena.pending.empty()) {
    processEvents(arena);
  }
  SplitChange change;
  Block* block = arena.take(request.size, change);
  if (block != nullptr) {
    handOut(block, request, change);
  }
  return block;
}

// Takes a new segment from the driver. NULL if there is no memory.
Block* DeviceCache::allocateSegment(Arena& arena, const Request& request) {
  std::lock_guard<std::mutex> growing(arena.growth);
  // Another thread may have brought a segment, or a block may have been freed.
  if (Block* block = allocateCached(arena, request)) {
    return block;
  }
  if (collectsGarbage()) {
    collectGarbage();
  }
  const size_t bytes = segmentSize(request.size);
  void* ptr = memory_.allocate(bytes);
  if (ptr == nullptr) {
    ptr = allocateAfterRelease(arena, bytes);
  }
  if (ptr == nullptr) {
    return nullptr;
  }
  const Segment segment{&arena, ptr, bytes, isSmall(request.size)};
  std::lock_guard<std::mutex> lock(arena.mutex);
  stats_.segmentAllocated(segment.small, bytes);
  trace(TraceEntry::SEGMENT_ALLOC, arena, ptr, bytes, request.context);
  SplitChange change;
  Block* block = arena.takeFrom(segment, request.size, change);
  handOut(block, request, change);
  return block;
}

// Each step frees more than the one before; the first that lets the driver succeed ends the search.
void* DeviceCache::allocateAfterRelease(Arena& arena, size_t bytes) {
  std::lock_guard<std::mutex> reclaiming(reclaiming_);
  void* ptr = nullptr;
  if (releaseAtLeast(arena, bytes) >= bytes) {
    ptr = memory_.allocate(bytes);
  }
  if (ptr == nullptr) {
    stats_.allocationRetried();
  }
  // Again while there is something to release: other threads take and free meanwhile.
  for (bool released = true; ptr == nullptr && released;) {
    released = releaseFree(releasableArenas()) > 0;
    ptr = memory_.allocate(bytes);
  }
  return ptr;
}

// The arena's mutex is held.
void DeviceCache::handOut(Block* block, const Request& request, const SplitChange& change) {
  block->requested = request.requested;
  block->context = request.context;
  stats_.blockAllocated(block->pool->small, block->size, block->requested, change);
  trace(TraceEntry::ALLOC, *block->arena, block->ptr, block->size, request.context);
}

void DeviceCache::runOutOfMemory(Arena& arena, const Request& request) {
  stats_.ranOutOfMemory();
  const auto [unused, total] = memoryInfo(device_);
  const auto [allocated, reserved] = stats_.totals();
  const size_t limit = memory_.limit();
  c10::reportOutOfMemoryToProfiler(
      static_cast<int64_t>(request.size), allocated, reserved, c10::Device(kDeviceType, device_));
  history_.outOfMemory(
      request.size,
      limit > 0 ? limit : total,
      unused,
      arena.stream.handleIfCreated(),
      arena.mempool,
      request.context);
  throwOutOfMemory(device_, request.requested, {unused, total, limit, allocated, reserved});
}

// ---- free ----

void DeviceCache::free(Block* block) {
  auto context = history_.gather(RecordContext::ALL);
  Arena& arena = *block->arena;
  std::vector<c10::StreamId> users;
  {
    std::lock_guard<std::mutex> lock(arena.mutex);
    if (context != nullptr) {
      block->context = std::move(context);
    }
    trace(TraceEntry::FREE_REQUESTED, arena, block->ptr, block->size, block->context);
    if (block->users.empty()) {
      completeFree(block);
      return;
    }
    stats_.blockReturned(block->pool->small, block->size);
    // Until each stream has an event, the block looks as if all events were pending.
    users = std::exchange(block->users, {});
    block->state = BlockState::Pending;
    block->pending_events = static_cast<int>(users.size());
  }
  recordEvents(arena, block, users);
}

// The arena's mutex is held; the block is allocated or pending.
void DeviceCache::completeFree(Block* block) {
  const bool returned = block->state == BlockState::Pending;
  const bool small = block->pool->small;
  const size_t size = block->size;
  const size_t requested = block->requested;
  trace(TraceEntry::FREE_COMPLETED, *block->arena, block->ptr, size, block->context);
  SplitChange change;
  block->arena->makeFree(block, change);
  if (returned) {
    stats_.blockReusable(small, size, requested, change);
  } else {
    stats_.blockFreed(small, size, requested, change);
  }
}

void DeviceCache::completeFrees(const std::vector<Block*>& blocks) {
  std::for_each(blocks.begin(), blocks.end(), [this](Block* block) { completeFree(block); });
}

void DeviceCache::recordStream(Block* block, c10::StreamId stream) {
  std::lock_guard<std::mutex> lock(block->arena->mutex);
  auto& users = block->users;
  const bool known = std::find(users.begin(), users.end(), stream) != users.end();
  if (block->arena->stream.id() != stream && !known) {
    users.push_back(stream);
  }
}

// Without a lock: recording may wait for room in the stream's queue.
void DeviceCache::recordEvents(
    Arena& arena, Block* block, const std::vector<c10::StreamId>& users) {
  for (const c10::StreamId id : users) {
    const Stream user = streamOf(device_, id);
    if (isCapturing(user)) {
      std::lock_guard<std::mutex> lock(deferred_mutex_);
      deferred_.push_back({block, id});
      continue;
    }
    std::unique_lock<std::mutex> lock(arena.mutex);
    Event event = arena.pending.newEvent();
    lock.unlock();
    std::exception_ptr error;
    try {
      event.record(user);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error == nullptr) {
      arena.pending.add({std::move(event), block, user});
    } else {
      arena.pending.hold(block, user);
      lock.unlock();
      warnHeld(error);
    }
  }
}

void DeviceCache::recordDeferredFrees() {
  std::vector<DeferredUse> uses;
  {
    std::lock_guard<std::mutex> lock(deferred_mutex_);
    uses.swap(deferred_);
  }
  for (const auto& [block, user] : uses) {
    recordEvents(*block->arena, block, {user});
  }
}

// Frees the blocks whose events have completed. The arena's mutex is held. Throws a stream's
// asynchronous error, once.
void DeviceCache::processEvents(Arena& arena) {
  std::vector<Block*> reusable;
  const WithoutLaunchStacks with_a_lock;
  const auto error = arena.pending.poll(reusable);
  completeFrees(reusable);
  if (error != nullptr) {
    std::rethrow_exception(error);
  }
}

// ---- back to the driver; reclaiming_ is held ----

// Releases every segment of these arenas that is wholly free; returns their bytes.
size_t DeviceCache::releaseFree(const std::vector<Arena*>& arenas) {
  for (Arena* arena : arenas) {
    waitForUses(*arena);
  }
  std::vector<Segment> segments;
  for (Arena* arena : arenas) {
    std::lock_guard<std::mutex> lock(arena->mutex);
    arena->removeSegments(segments);
  }
  const size_t bytes = release(segments);
  pools_.forgetEmpty();
  return bytes;
}

// Releases just enough oversize segments of the arena for a request, if that can do.
size_t DeviceCache::releaseAtLeast(Arena& arena, size_t bytes) {
  const bool private_pool = arena.mempool != c10::MempoolId_t{0, 0};
  if (private_pool || maxSplitSize() == std::numeric_limits<size_t>::max()) {
    return 0;
  }
  std::vector<Segment> segments;
  {
    std::lock_guard<std::mutex> lock(arena.mutex);
    arena.removeOversize(bytes, segments);
  }
  return release(segments);
}

// What the driver does not take back returns to its arena.
size_t DeviceCache::release(std::vector<Segment>& segments) {
  size_t bytes = 0;
  std::exception_ptr error;
  for (const Segment& segment : segments) {
    Arena& arena = *segment.arena;
    trace(TraceEntry::SEGMENT_FREE, arena, segment.ptr, segment.bytes);
    try {
      memory_.free(segment.ptr, segment.bytes);
      stats_.segmentFreed(segment.small, segment.bytes);
      bytes += segment.bytes;
    } catch (...) {
      error = std::current_exception();
      trace(TraceEntry::SEGMENT_ALLOC, arena, segment.ptr, segment.bytes);
      std::lock_guard<std::mutex> lock(arena.mutex);
      arena.addSegment(segment);
    }
  }
  if (error != nullptr) {
    std::rethrow_exception(error);
  }
  return bytes;
}

// Waits for the other streams that use freed blocks of the arena, without its lock. Events come
// first: a block whose event fails is then held, and its streams are waited for.
void DeviceCache::waitForUses(Arena& arena) {
  std::exception_ptr error = waitForEvents(arena);
  if (auto thrown = waitForStreams(arena)) {
    error = std::move(thrown);
  }
  if (error != nullptr) {
    std::rethrow_exception(error);
  }
}

std::exception_ptr DeviceCache::waitForEvents(Arena& arena) {
  std::vector<PendingUse> uses;
  {
    std::lock_guard<std::mutex> lock(arena.mutex);
    uses = arena.pending.takeUses();
  }
  std::vector<UseStatus> results;
  for (const PendingUse& use : uses) {
    results.push_back(PendingFrees::wait(use));
  }

  std::lock_guard<std::mutex> lock(arena.mutex);
  std::exception_ptr error;
  std::vector<Block*> reusable;
  for (size_t i = uses.size(); i-- > 0;) { // what returns to a queue goes to its front
    if (auto thrown = arena.pending.settle(std::move(uses[i]), results[i], reusable)) {
      error = std::move(thrown);
    }
  }
  completeFrees(reusable);
  return error;
}

std::exception_ptr DeviceCache::waitForStreams(Arena& arena) {
  std::vector<Block*> held;
  std::vector<Stream> users;
  {
    std::lock_guard<std::mutex> lock(arena.mutex);
    held = arena.pending.takeHeld();
    for (const Block* block : held) {
      for (const c10::StreamId id : block->untracked) {
        users.push_back(streamOf(device_, id));
      }
    }
  }
  std::exception_ptr error;
  std::erase_if(users, [&](const Stream& user) {
    const UseStatus result = PendingFrees::wait(user);
    if (isAsynchronousError(result.status)) {
      error = result.error;
    }
    return result.status != PUONE_OK;
  });

  std::lock_guard<std::mutex> lock(arena.mutex);
  std::vector<Block*> reusable;
  for (Block* block : held) {
    arena.pending.release(block, users, reusable);
  }
  completeFrees(reusable);
  return error;
}

// Releases the segments unused for longest until the reserved share is below the threshold.
void DeviceCache::collectGarbage() {
  std::lock_guard<std::mutex> reclaiming(reclaiming_);
  const double threshold = AcceleratorAllocatorConfig::garbage_collection_threshold();
  const size_t limit = memory_.limit();
  const auto whole = static_cast<double>(limit > 0 ? limit : memoryInfo(device_).total);
  const auto allowed = static_cast<size_t>(threshold * whole);
  size_t reserved = stats_.totals().reserved;
  std::vector<std::pair<uint64_t, size_t>> idle; // (since when, bytes)
  for (Arena* arena : releasableArenas()) {
    std::lock_guard<std::mutex> lock(arena->mutex);
    arena->listIdle(idle);
  }
  std::sort(idle.begin(), idle.end());
  std::optional<uint64_t> latest;
  for (const auto& [since, bytes] : idle) {
    if (reserved <= allowed || since >= now()) {
      break;
    }
    latest = since;
    reserved -= bytes;
  }
  if (!latest) {
    return;
  }
  std::vector<Segment> segments;
  for (Arena* arena : releasableArenas()) {
    std::lock_guard<std::mutex> lock(arena->mutex);
    arena->removeIdle(*latest, segments);
  }
  release(segments);
}

void DeviceCache::emptyCache() {
  std::lock_guard<std::mutex> reclaiming(reclaiming_);
  releaseFree(releasableArenas());
}

void DeviceCache::retainPool(c10::MempoolId_t pool) {
  pools_.retain(pool);
}

void DeviceCache::releasePool(c10::MempoolId_t pool) {
  pools_.release(pool);
  std::lock_guard<std::mutex> reclaiming(reclaiming_);
  std::vector<Arena*> retired;
  pools_.listRetired(retired);
  releaseFree(retired);
}

// ---- what is seen from outside ----

// Creates no stream, which could fail halfway through a change.
void DeviceCache::trace(
    TraceEntry::Action action,
    const Arena& arena,
    const void* ptr,
    size_t size,
    const MemoryHistory::Context& context) {
  if (C10_UNLIKELY(history_.active())) {
    history_.record(action, ptr, size, arena.stream.handleIfCreated(), arena.mempool, context);
  }
}

c10::CachingDeviceAllocator::DeviceStats DeviceCache::stats() const {
  return stats_.get();
}

void DeviceCache::resetAccumulatedStats() {
  stats_.resetAccumulated();
}

void DeviceCache::resetPeakStats() {
  stats_.resetPeaks();
}

void DeviceCache::setMemoryFraction(double fraction) {
  const auto total = static_cast<double>(memoryInfo(device_).total);
  memory_.setLimit(fraction >= 1.0 ? 0 : static_cast<size_t>(fraction * total));
}

void DeviceCache::snapshot(std::vector<c10::CachingDeviceAllocator::SegmentInfo>& out) {
  const size_t first = out.size();
  auto all = arenas();
  pools_.list(all);
  for (Arena* arena : all) {
    std::lock_guard<std::mutex> lock(arena->mutex);
    arena->snapshot(out);
  }
  std::sort(out.begin() + static_cast<ptrdiff_t>(first), out.end(), [](auto& a, auto& b) {
    return a.address < b.address;
  });
  history_.record(TraceEntry::SNAPSHOT, nullptr, 0, nullptr, {0, 0});
}

} // namespace puone
