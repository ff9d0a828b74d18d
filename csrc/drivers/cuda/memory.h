// SPDX-License-Identifier: BSD-3-Clause
// Device memory and pinned memory, and the table of live blocks that pointer_attributes() answers
// from. Copies, fills and launches do not look into it.
//
// Device memory comes from cudaMalloc, one call per block. The runtime above caches, in large
// segments, and reuses them in stream order; a stream-ordered pool underneath would keep a second
// cache of the same memory, which neither could use when the other is short of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>

#include "hal/hal.h"

namespace puone::cuda {

class Memory {
 public:
  static constexpr size_t kAlignment = 256; // of cudaMalloc

  ~Memory();

  /// `bytes` on `device`, which is current for CUDA and has `total` bytes.
  void* allocate(int32_t device, size_t bytes, size_t total);
  static void release(void* base);

  void* allocateHost(size_t bytes);
  static void releaseHost(void* base);

  /// Takes the block that starts at `base` out of the table; returns its device, -1 if it is pinned
  /// memory. The caller waits for the device, of pinned memory for all devices, and then calls
  /// release() or releaseHost().
  int32_t retire(void* base);

  /// For device memory of another user of CUDA in the process, only the device is known: the result
  /// is a block of size 0 (unknown) that starts at the pointer.
  puone_pointer_attributes attributes(const void* pointer) const;

 private:
  struct Block {
    size_t bytes;
    int32_t device; // -1: pinned memory
  };
  using Blocks = std::map<uintptr_t, Block>; // by base address

  /// Adds a new block to the table. If that fails, frees the block and throws.
  void add(void* base, const Block& block);
  static void release(void* base, const Block& block);
  /// The block that `address` lies in, or end().
  Blocks::const_iterator find(uintptr_t address) const;
  /// The device of memory that is not in the table, -1 if it is no device memory either.
  int32_t foreignDevice(uintptr_t address) const;

  mutable std::mutex mutex_;
  Blocks blocks_;
  std::set<uintptr_t> carved_; // chunks that small blocks have been carved out of
};

} // namespace puone::cuda
