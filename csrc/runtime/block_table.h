// SPDX-License-Identifier: BSD-3-Clause
// The map from an address to the allocated block that begins there, for all devices: a deleter gets
// an address and nothing else. A DataPtr's context cannot be the block instead, because c10's
// copy-on-write and raw_deallocate() require that the context is the address.
#pragma once

#include <c10/util/flat_hash_map.h>

#include <array>
#include <cstdint>
#include <mutex>

#include "runtime/spin_lock.h"

namespace puone {

struct Block;

// Thread-safe. Many shards, so that threads rarely meet.
class BlockTable {
 public:
  void insert(void* ptr, Block* block) {
    Shard& shard = shardOf(ptr);
    std::lock_guard<SpinLock> lock(shard.lock);
    shard.blocks[ptr] = block;
  }

  // The block that begins at `ptr`, NULL if there is none. It stays valid while its caller may not
  // free it.
  Block* find(void* ptr) {
    Shard& shard = shardOf(ptr);
    std::lock_guard<SpinLock> lock(shard.lock);
    const auto found = shard.blocks.find(ptr);
    return found == shard.blocks.end() ? nullptr : found->second;
  }

  // Same, and forgets it.
  Block* take(void* ptr) {
    Shard& shard = shardOf(ptr);
    std::lock_guard<SpinLock> lock(shard.lock);
    const auto found = shard.blocks.find(ptr);
    if (found == shard.blocks.end()) {
      return nullptr;
    }
    Block* block = found->second;
    shard.blocks.erase(found);
    return block;
  }

 private:
  static constexpr size_t kShards = 64;
  static constexpr size_t kRegion = size_t{2} << 20; // bytes of a segment of small blocks

  // Blocks begin at multiples of 512 from their segment's start.
  static size_t number(const void* ptr) noexcept {
    return reinterpret_cast<uintptr_t>(ptr) >> 9;
  }
  struct Hash {
    size_t operator()(const void* ptr) const noexcept {
      return number(ptr);
    }
  };
  struct alignas(64) Shard {
    SpinLock lock;
    ska::flat_hash_map<void*, Block*, Hash> blocks;
  };

  Shard& shardOf(const void* ptr) noexcept {
    // Streams have segments of their own: threads that use other streams do not meet.
    return shards_[(reinterpret_cast<uintptr_t>(ptr) / kRegion) % kShards];
  }

  std::array<Shard, kShards> shards_;
};

} // namespace puone
