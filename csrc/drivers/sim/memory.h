// SPDX-License-Identifier: BSD-3-Clause
// Device and pinned memory.
//
// One reservation of address space holds two halves of equal size:
//
//   | puone:0 | puone:1 | ...    addresses of the user: always PROT_NONE, a host access faults
//   | puone:0 | puone:1 | ...    backing store, at a constant offset: accessible in live blocks
//
// Only the driver's copies, fills and kernels add the offset (backing()), so protection costs
// nothing per launch. Blocks end at a guard page, so an access after the end faults in the backing
// store as well; addresses are reused as late as possible, so use after free faults, too.
//
// The backing store of a block that other processes map is a file in memory (hal/shared_file.h); it
// becomes one when the block is exported. Blocks that are not have huge pages and cost nothing
// more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "hal/hal.h"
#include "hal/shared_file.h"

namespace puone::sim {

class Memory {
 public:
  static constexpr size_t kAlignment = 256;
  /// Fills new memory under PUONE_SIM_POISON. All ones: NaN in every floating type, -1 in integers.
  static constexpr int kPoison = 0xff;

  /// Reserves address space only; pages are committed when touched.
  Memory(int32_t devices, uint64_t capacity, bool poison);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// `bytes` of device memory, or Error(OUT_OF_MEMORY).
  void* allocate(int32_t device, size_t bytes);

  /// A block that was removed from the live set: no entry accepts it any more, but its pages stay
  /// for the work that uses them.
  struct Retired {
    int32_t device;
    uintptr_t low; // first page, in user addresses
    size_t bytes;  // of pages, without the guard
    bool imported;
    SharedFile file; // closed with the block
  };
  /// Removes the block that starts at `base` from the live set.
  Retired retire(void* base);
  /// Returns the pages of a retired block to the system.
  void release(const Retired& block);

  /// What another process needs to map a block.
  struct Shared {
    SharedFile::Name file;
    uint64_t pages; // size of the file in bytes
    uint64_t bytes; // that were requested
    int32_t device;
  };
  /// Makes a file the block's backing store, unless it is one. No work may run meanwhile. Throws
  /// Error(OUT_OF_MEMORY), Error(INVALID_ARGUMENT) for a block of another process.
  Shared share(void* base);
  /// Maps a block of another process. It does not count as used: the other device has it. Throws
  /// Error(INVALID_ARGUMENT), Error(OUT_OF_MEMORY).
  void* import(const Shared& shared);

  void* allocateHost(size_t bytes);
  /// Removes a pinned block from the live set; the caller frees it with releaseHost().
  void retireHost(void* base);
  static void releaseHost(void* base);

  puone_pointer_attributes attributes(const void* pointer) const;
  uint64_t freeBytes(int32_t device) const;
  uint64_t capacity() const {
    return capacity_;
  }

  /// The address that a kernel uses for a user address: with the offset for device memory, the same
  /// for pinned memory. Throws Error(INTERNAL) for any other address.
  void* resolve(const void* pointer) const;

  /// resolve() for an address that is known to be valid.
  template <class T>
  T* backing(T* pointer) const {
    return isDevice(pointer) ? reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(pointer) + offset_)
                             : pointer;
  }

  bool isDevice(const void* pointer) const {
    return reinterpret_cast<uintptr_t>(pointer) - front_ < offset_;
  }

  /// The device of an address for which isDevice() is true.
  int32_t deviceOf(const void* pointer) const {
    return static_cast<int32_t>((reinterpret_cast<uintptr_t>(pointer) - front_) / span_);
  }

  uintptr_t front() const {
    return front_;
  }
  size_t span() const {
    return span_;
  }
  int32_t devices() const {
    return static_cast<int32_t>(arenas_.size());
  }

  /// fork(): hold the lock across it, so that the child's tables are consistent.
  void lock() const {
    mutex_.lock();
  }
  void unlock() const {
    mutex_.unlock();
  }

 private:
  struct Block {
    uintptr_t low; // first page
    size_t pages;  // size of its pages in bytes
    size_t bytes;  // requested size
    int32_t device;
    bool imported = false; // a block of another process
    SharedFile file = {};  // the backing store of a shared block
  };
  using Ranges = std::map<uintptr_t, size_t>; // start, bytes
  struct Arena {
    Ranges free;      // unused addresses
    uintptr_t cursor; // next-fit: the addresses above it have been unused longest
    uint64_t used = 0;
  };
  using Blocks = std::map<uintptr_t, Block>; // by the user's base address
  using Pinned = std::map<uintptr_t, size_t>;

  uintptr_t reserve(Arena& arena, size_t pages);
  /// reserve(), or Error(OUT_OF_MEMORY).
  uintptr_t reserveOn(int32_t device, size_t pages);
  void unreserve(Arena& arena, uintptr_t low, size_t pages);
  Blocks::const_iterator findBlock(uintptr_t address) const;
  Pinned::const_iterator findPinned(uintptr_t address) const;

  const uint64_t capacity_;
  const bool poison_;
  uintptr_t front_ = 0;
  size_t span_ = 0;   // address space per device
  size_t offset_ = 0; // from a user address to its backing store; also the size of a half
  mutable std::mutex mutex_;
  std::vector<Arena> arenas_;
  Blocks blocks_;
  Pinned pinned_;
};

} // namespace puone::sim
