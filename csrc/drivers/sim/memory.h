// SPDX-License-Identifier: BSD-3-Clause
// Device and pinned memory.
//
// One reservation of address space holds two halves of equal size:
//
//   | puone:0 | puone:1 | ...    addresses the user sees: PROT_NONE for ever, a host access faults
//   | puone:0 | puone:1 | ...    backing store, at a constant offset: readable where a block lives
//
// Only the driver's copies, fills and kernels add the offset (backing()), so protection costs
// nothing per launch. Blocks end flush with a guard page, so running over the end of one faults in
// the backing store too; addresses are reused as late as possible, so use after free does as well.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "hal/hal.h"

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

  /// A block taken out of the live set: no longer accepted by any entry, its pages still there for
  /// the work that is using them.
  struct Retired {
    int32_t device;
    uintptr_t low; // first page, in user addresses
    size_t bytes;  // of pages, without the guard
  };
  /// Takes the block that starts at `base` out of the live set.
  Retired retire(void* base);
  /// Gives the pages of a retired block back.
  void release(const Retired& block);

  void* allocateHost(size_t bytes);
  /// Takes a pinned block out of the live set; the caller frees it with releaseHost().
  void* retireHost(void* base);
  static void releaseHost(void* base);

  puone_pointer_attributes attributes(const void* pointer) const;
  uint64_t freeBytes(int32_t device) const;
  uint64_t capacity() const {
    return capacity_;
  }

  /// Where a kernel finds what a user address names: device memory at the offset, pinned memory
  /// where it is. Error(INTERNAL) for any other address.
  void* resolve(const void* pointer) const;

  /// As resolve(), for an address already checked.
  template <class T>
  T* backing(T* pointer) const {
    return isDevice(pointer) ? reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(pointer) + offset_)
                             : pointer;
  }

  bool isDevice(const void* pointer) const {
    return reinterpret_cast<uintptr_t>(pointer) - front_ < offset_;
  }

  /// Of an address that isDevice().
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

  /// fork(): hold the lock across it, so that the child finds the tables whole.
  void lock() const {
    mutex_.lock();
  }
  void unlock() const {
    mutex_.unlock();
  }

 private:
  struct Block {
    uintptr_t low; // first page
    size_t pages;  // bytes of pages
    size_t bytes;  // as asked for
    int32_t device;
  };
  using Ranges = std::map<uintptr_t, size_t>; // start, bytes
  struct Arena {
    Ranges free;      // unused addresses
    uintptr_t cursor; // next-fit: the addresses above it have rested longest
    uint64_t used = 0;
  };
  using Blocks = std::map<uintptr_t, Block>; // by the user's base address
  using Pinned = std::map<uintptr_t, size_t>;

  uintptr_t reserve(Arena& arena, size_t pages);
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
