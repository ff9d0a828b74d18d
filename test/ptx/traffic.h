// SPDX-License-Identifier: BSD-3-Clause
// What a grid moves between global memory and its threads: a model, of which nothing is known but
// the addresses.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace puone::ptx {

/// One direction. A sector, 32 bytes, is what memory transfers at least; a warp's access of one
/// instruction takes the sectors that its lanes touch.
struct Moved {
  uint64_t bytes = 0;    // that threads asked for
  uint64_t accesses = 0; // of threads
  uint64_t sectors = 0;
};

class Traffic {
 public:
  Moved loaded, stored;

  /// Begins an instruction's access; note() each lane's.
  void begin() {
    count_ = 0;
  }
  void note(uint64_t address, uint32_t bytes) {
    for (uint64_t sector = address / 32; sector <= (address + bytes - 1) / 32; ++sector) {
      sectors_[count_++] = sector;
    }
    bytes_ += bytes;
    ++accesses_;
  }
  void end(Moved& to);

  /// Where PUONE_PTX_TRAFFIC names a file, a line of what a grid did: its entry, bytes, accesses
  /// and sectors loaded, the same of what was stored, and the instructions that its warps executed.
  static bool isWanted();
  void write(const std::string& entry, uint64_t instructions) const;

 private:
  std::array<uint64_t, 64> sectors_; // of 32 accesses of at most 16 bytes, which are aligned
  uint32_t count_ = 0;
  uint64_t bytes_ = 0, accesses_ = 0;
};

} // namespace puone::ptx
