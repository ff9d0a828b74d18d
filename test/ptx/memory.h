// SPDX-License-Identifier: BSD-3-Clause
// What is known of each byte that device code can touch: whether it was written, and by which
// threads it was accessed since nothing has ordered them. Not thread-safe: the executor's lock
// guards all of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace puone::ptx {

/// The thread that accesses memory, and when. Two accesses of one block are ordered by a barrier
/// between them (`epoch`), of one warp also by bar.warp.sync (`warp_epoch`); those of two blocks of
/// a grid by nothing.
struct Accessor {
  uint32_t grid;  // a number that no other grid has
  uint32_t block; // in the grid
  uint16_t thread;
  uint16_t epoch;
  uint16_t warp_epoch;
};

enum class Access : uint8_t {
  kRead,
  kWrite,
  kStrongRead, // volatile, relaxed ...: these, and atomic operations, may race with each other
  kStrongWrite,
  kAtomic // reads and writes
};
constexpr bool reads(Access how) {
  return how == Access::kRead || how == Access::kStrongRead || how == Access::kAtomic;
}
constexpr bool writes(Access how) {
  return how == Access::kWrite || how == Access::kStrongWrite || how == Access::kAtomic;
}
constexpr bool writesOnly(Access how) {
  return writes(how) && !reads(how);
}
constexpr bool isStrong(Access how) {
  return how >= Access::kStrongRead;
}

/// The accesses to one byte in the grid that touched it last.
class Track {
 public:
  /// `same`: the write leaves the value as it is. Writing one value from many threads is tolerated
  /// (and only that): whichever comes last, the result is the same. Throws Violation(kRace).
  void note(const Accessor& who, Access how, bool same);
  bool isWrittenIn(uint32_t grid) const {
    return write_.grid == grid;
  }

 private:
  struct Record {
    uint32_t grid = 0, block = 0;
    uint16_t thread = 0, epoch = 0, warp_epoch = 0;
    bool atomic = false;
    bool of_threads = false; // reads: also by others of this block and epoch
    bool of_blocks = false;  // reads: also by other blocks of this grid
  };
  static bool ordered(const Record& before, const Accessor& who);
  void noteRead(const Accessor& who, bool atomic);

  Record write_, read_;
};

/// Global memory: the blocks that a grid may touch, and what their bytes hold.
class GlobalMemory {
 public:
  struct Range {
    uint64_t begin, end;
    bool constant; // may only be read
  };

  /// The ranges from now on, in any order.
  void setRanges(std::vector<Range> ranges);

  /// Memory has undefined contents, or is written by something other than device code.
  void forget(uint64_t begin, uint64_t bytes);
  void written(uint64_t begin, uint64_t bytes);
  /// The bytes are as defined as those copied.
  void copied(uint64_t to, uint64_t from, uint64_t bytes);

  /// Checks and notes an access of device code; where the bytes are. `used`: bit i says that byte i
  /// matters to a read. `value`: what a write will leave there. Throws Violation.
  std::byte* access(
      const Accessor& who,
      uint64_t address,
      uint32_t bytes,
      Access how,
      uint64_t used,
      const void* value);

 private:
  static constexpr uint64_t kPage = 4096;
  struct Page {
    bool all = false;                              // every byte is written
    std::unique_ptr<std::array<bool, kPage>> some; // else: which
    std::unique_ptr<std::array<Track, kPage>> tracks;
    bool isWritten(uint64_t at) const {
      return all || (some != nullptr && (*some)[at]);
    }
  };
  Page& page(uint64_t address);
  void mark(uint64_t begin, uint64_t bytes, bool written);
  const Range& rangeOf(uint64_t address, uint32_t bytes);

  std::vector<Range> ranges_; // sorted
  Range last_{0, 0, false};
  std::unordered_map<uint64_t, Page> pages_;
  uint64_t last_number_ = ~uint64_t{0};
  Page* last_page_ = nullptr;
};

/// A block's shared memory.
class SharedMemory {
 public:
  struct Place {
    std::string name;
    uint32_t begin, end;
  };
  explicit SharedMemory(std::vector<Place> places);

  /// Contents are undefined from now on. `block`: a number that no other block of any grid has.
  void begin(uint32_t block);
  std::byte* access(Accessor who, uint64_t address, uint32_t bytes, Access how, const void* value);

  /// From the first to the second, something else writes the bytes for the thread `who`: nobody may
  /// access them. They are `data` then.
  void beginCopy(Accessor who, uint64_t address, uint32_t bytes);
  void endCopy(Accessor who, uint64_t address, uint32_t bytes, const std::byte* data);

 private:
  void demandInside(uint64_t address, uint32_t bytes) const;
  /// Throws Violation(kRace) if a copy writes the byte.
  void demandAtRest(uint64_t address) const;

  std::vector<Place> places_;
  std::vector<std::byte> bytes_;
  std::vector<uint16_t> copied_for_; // 1 + the thread; 0: no copy is under way
  std::vector<Track> tracks_;
  uint32_t block_ = 0;
};

/// Throws Violation(kMisaligned) unless the address is a multiple of `bytes`.
void demandAligned(uint64_t address, uint32_t bytes);

} // namespace puone::ptx
