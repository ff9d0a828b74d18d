// SPDX-License-Identifier: BSD-3-Clause
// Device memory and pinned memory of the stand-in. The runtime's lock guards all of it.
//
// All devices share one range of addresses, which is closed to everybody (PROT_NONE) except while
// device work runs: a host that dereferences a device address faults, unless it does so beside
// running work. Device code dereferences device addresses as they are, and so do the sanitizers.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "standin.h"

namespace puone::standin {

/// NULL: nobody watches.
extern const StandinWatcher* watcher;

struct Block {
  int device;
  size_t bytes;
  bool live;     // in the order of the streams: allocated, and not yet freed
  bool released; // the host has asked to free it: only queued work may still name it
};

class Memory {
 public:
  Memory(int devices, size_t bytes_per_device, bool poison, bool guarded);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// Takes room for a block, NULL if there is none. `spare`: bytes that will be free by the time
  /// the block is live.
  void* take(int device, size_t bytes, size_t spare = 0);
  /// The block begins to live; its contents are undefined.
  void enliven(void* base);
  /// The block's contents die; its room stays taken.
  void kill(void* base);
  /// Gives the room back.
  void giveBack(void* base);

  size_t freeBytes(int device) const;
  size_t bytesPerDevice() const {
    return capacity_;
  }
  static size_t footprint(size_t bytes);

  struct Found {
    uintptr_t base = 0;
    Block* block = nullptr; // NULL: none
  };
  /// The device block around an address.
  Found findDevice(const void* p);
  bool inDeviceRange(const void* p) const;
  size_t deviceBlocks() const;

  void* takePinned(size_t bytes, int device);
  /// False if it is not the start of one.
  bool givePinnedBack(void* base);
  struct Pinned {
    size_t bytes;
    int device; // current when it was made
  };
  /// The pinned block around an address, NULL if none.
  const std::pair<const uintptr_t, Pinned>* findPinned(const void* p) const;
  size_t pinnedBlocks() const {
    return pinned_.size();
  }
  /// All blocks that are live.
  std::vector<StandinRange> ranges() const;

  /// Device work begins and ends.
  void open();
  void close();

 private:
  struct Arena {
    uintptr_t low, high, cursor;
    uintptr_t top; // of what was ever used
    size_t used;
    std::map<uintptr_t, Block> blocks;
  };
  Arena* arenaOf(const void* p);
  static uintptr_t place(const Arena& arena, size_t span);
  void fill(void* base, size_t bytes, unsigned char value);
  void protect(int protection);

  const size_t capacity_;
  const bool poison_;
  const bool guarded_;
  uintptr_t front_ = 0;
  size_t span_ = 0; // addresses per device
  int users_ = 0;   // pieces of device work that run
  std::vector<Arena> arenas_;
  std::map<uintptr_t, Pinned> pinned_;
};

} // namespace puone::standin
