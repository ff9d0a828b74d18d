// SPDX-License-Identifier: BSD-3-Clause
// The cached memory of one stream, or of one stream and one private pool (private_pools.h): its
// segments, the blocks they are split into, and the free blocks. Work on one stream is ordered, so
// a freed block is reused by its own stream at once. Streams share nothing here: threads that use
// different streams do not wait for each other.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <deque>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "runtime/block.h"
#include "runtime/memory_stats.h"
#include "runtime/pending_frees.h"

namespace puone {

class DeviceCache;

// A range that the driver's malloc() returned and that belongs to no arena at the moment.
struct Segment {
  Arena* arena; // where it belonged
  void* ptr;
  size_t bytes;
  bool small;
};

class Arena {
 public:
  Arena(DeviceCache& cache, const Stream& stream, c10::MempoolId_t mempool)
      : cache(cache), stream(stream), mempool(mempool) {}

  DeviceCache& cache;
  const Stream stream;
  // {0, 0}: the memory that all operations share. Changes only while there is no segment.
  c10::MempoolId_t mempool;

  // Held by the thread that requests a segment of this arena from the driver; locked before
  // `mutex`. If two threads find no free block, only one of them requests a segment.
  std::mutex growth;

  // Guards all members below, and the blocks of the arena. No thread waits while it holds it.
  std::mutex mutex;

  PendingFrees pending;

  // The best free block, cut to `size` and allocated; NULL if there is none.
  Block* take(size_t size, SplitChange& change);

  // Makes a segment a free block, or allocates the first `size` bytes of it.
  void addSegment(const Segment& segment);
  Block* takeFrom(const Segment& segment, size_t size, SplitChange& change);

  // Puts a block back into its pool, merged with its free neighbours.
  void makeFree(Block* block, SplitChange& change);

  // Whether there is no segment.
  bool empty() const noexcept {
    return segments_.empty();
  }

  // Removes wholly free segments: all; large ones that became free at `time` or earlier; or of the
  // oversize ones the smallest of at least `bytes`, and if there is none the largest ones that add
  // up to `bytes`, if they do. Appends them.
  void removeSegments(std::vector<Segment>& removed);
  void removeIdle(uint64_t time, std::vector<Segment>& removed);
  void removeOversize(size_t bytes, std::vector<Segment>& removed);

  // Wholly free large segments: when they became free, and their bytes. Appends them.
  void listIdle(std::vector<std::pair<uint64_t, size_t>>& idle) const;

  // Every segment with its blocks. Appends them.
  void snapshot(std::vector<c10::CachingDeviceAllocator::SegmentInfo>& out) const;

 private:
  BlockPool& poolFor(bool small) {
    return small ? small_ : large_;
  }
  Block* newBlock();
  Block* newSegment(const Segment& segment);
  void dropBlock(Block* block);
  void insertFree(Block* block);
  Block* allocate(Block* block, size_t size, SplitChange& change);
  void splitAt(Block* block, size_t size);
  void absorbNext(Block* block);
  void remove(Block* block, std::vector<Segment>& removed);

  BlockPool small_{true};
  BlockPool large_{false};
  std::unordered_set<Block*> segments_; // the first block of each; it stays the first
  std::deque<Block> storage_;           // addresses of blocks stay valid
  std::vector<Block*> spare_;           // blocks of storage_ that are not in use
};

} // namespace puone
