// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/private_pools.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace puone {

void PrivatePools::retain(c10::MempoolId_t pool) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++pools_[pool].uses;
}

void PrivatePools::release(c10::MempoolId_t pool) {
  const std::lock_guard<std::mutex> lock(mutex_);
  --pools_.at(pool).uses;
}

Arena& PrivatePools::arenaOf(DeviceCache& cache, const Stream& stream, c10::MempoolId_t pool) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto& arenas = pools_.at(pool).arenas;
  for (const auto& arena : arenas) {
    if (arena->stream == stream) return *arena;
  }
  auto arena = takeSpare(stream);
  if (arena == nullptr) arena = std::make_unique<Arena>(cache, stream, pool);
  arena->mempool = pool;
  return *arenas.emplace_back(std::move(arena));
}

std::unique_ptr<Arena> PrivatePools::takeSpare(const Stream& stream) {
  const auto found = std::find_if(
      spare_.begin(), spare_.end(), [&](const auto& arena) { return arena->stream == stream; });
  if (found == spare_.end()) return nullptr;
  auto arena = std::move(*found);
  spare_.erase(found);
  return arena;
}

void PrivatePools::list(std::vector<Arena*>& arenas) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [id, pool] : pools_) {
    for (const auto& arena : pool.arenas) arenas.push_back(arena.get());
  }
}

void PrivatePools::listRetired(std::vector<Arena*>& arenas) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [id, pool] : pools_) {
    if (pool.uses > 0) continue;
    for (const auto& arena : pool.arenas) arenas.push_back(arena.get());
  }
}

bool PrivatePools::isEmpty(const Pool& pool) {
  return std::all_of(pool.arenas.begin(), pool.arenas.end(), [](const auto& arena) {
    const std::lock_guard<std::mutex> lock(arena->mutex);
    return arena->empty();
  });
}

void PrivatePools::forgetEmpty() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto it = pools_.begin(); it != pools_.end();) {
    Pool& pool = it->second;
    if (pool.uses > 0 || !isEmpty(pool)) {
      ++it;
      continue;
    }
    std::move(pool.arenas.begin(), pool.arenas.end(), std::back_inserter(spare_));
    it = pools_.erase(it);
  }
}

} // namespace puone
