// SPDX-License-Identifier: BSD-3-Clause
// The private pools of one device: the memory of graphs. What is allocated on a stream that is
// being captured comes from an arena of (stream, pool), and stays in the pool while a graph may be
// launched that uses it. A pool may be shared by graphs.
//
// A pool that no graph uses any more is retired: it gives out nothing, and its free memory goes
// back to the driver, as cached memory does.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/arena.h"

namespace puone {

// Thread-safe.
class PrivatePools {
 public:
  // One more graph uses the pool, or one less.
  void retain(c10::MempoolId_t pool);
  void release(c10::MempoolId_t pool);

  // The arena of a stream in a pool that is in use. It lives as long as this.
  Arena& arenaOf(DeviceCache& cache, const Stream& stream, c10::MempoolId_t pool);

  // Appends the arenas of all pools, or of those that are retired.
  void list(std::vector<Arena*>& arenas) const;
  void listRetired(std::vector<Arena*>& arenas) const;

  // Forgets retired pools without memory.
  void forgetEmpty();

 private:
  struct Pool {
    int uses = 0; // 0: retired
    std::vector<std::unique_ptr<Arena>> arenas;
  };

  static bool isEmpty(const Pool& pool);
  std::unique_ptr<Arena> takeSpare(const Stream& stream);

  mutable std::mutex mutex_; // locked before Arena::mutex
  std::map<c10::MempoolId_t, Pool> pools_;
  // Arenas of forgotten pools, for other pools: blocks and threads may still point to them.
  std::vector<std::unique_ptr<Arena>> spare_;
};

} // namespace puone
