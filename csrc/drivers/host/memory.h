// SPDX-License-Identifier: BSD-3-Clause
// The blocks of device memory and of pinned memory, all of them in host memory. Every function may
// be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "hal/hal.h"

namespace puone::host {

class Memory {
 public:
  /// Bytes that the device pretends to have; allocating more fails as on hardware. The suite asks
  /// for tensors of more than 2^31 bytes before it says that level Core is reached.
  static constexpr uint64_t kTotal = uint64_t{4} << 30;
  /// What malloc() results are multiples of, in bytes.
  static constexpr size_t kAlignment = 256;

  Memory() = default;
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// A new block of `bytes` > 0 bytes. Throws Error(OUT_OF_MEMORY).
  void* allocate(puone_memory_kind kind, size_t bytes);
  /// Gives back what allocate() returned. Nothing may use it any more.
  void release(void* block);
  /// Where the address lives, as pointer_attributes() says it.
  puone_pointer_attributes attributes(const void* address) const;
  uint64_t freeBytes() const;

  /// Held across fork(), so that the child finds the table consistent.
  std::mutex& mutex() const {
    return mutex_;
  }

 private:
  struct Block {
    size_t bytes;
    puone_memory_kind kind;
  };

  mutable std::mutex mutex_;
  std::map<uintptr_t, Block> blocks_; // by address
  uint64_t used_ = 0;                 // bytes of the device's blocks
};

} // namespace puone::host
