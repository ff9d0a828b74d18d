// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace puone::ptx {

/// What the executor reports. The names in messages are those of kindName().
enum class Kind : uint8_t {
  kSyntax,        // text that is not PTX, or beyond what the executor knows of it
  kUnknown,       // an instruction that it does not know
  kOutOfBounds,   // an address outside of every variable or block of memory
  kMisaligned,    // an address that is not a multiple of the access's size
  kUninitialised, // a read of a register or byte that nothing has written
  kRace,          // accesses that nothing orders, one of them a write
  kBarrier,       // a barrier or exchange that not all threads reach
  kParameter,     // a write to a kernel's parameters
  kLimit          // more instructions than PUONE_PTX_LIMIT permits
};
const char* kindName(Kind kind);

/// Thrown where the error is seen; the executor adds kernel, block, thread and line.
struct Violation : std::runtime_error {
  Violation(Kind of, const std::string& detail, int32_t in_lane = -1)
      : std::runtime_error(detail), kind(of), lane(in_lane) {}
  Kind kind;
  int32_t lane; // of the warp; -1: none in particular
};

} // namespace puone::ptx
