// SPDX-License-Identifier: BSD-3-Clause
// 32 threads in lock step, and the block that they belong to.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <vector>

#include "copies.h"
#include "memory.h"
#include "program.h"
#include "traffic.h"
#include "violation.h"

namespace puone::ptx {

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const {
    return uint64_t{x} * y * z;
  }
};

/// What all threads of a grid share.
struct Grid {
  const Program& program;
  Dim3 blocks, threads;
  const std::byte* parameters;
  GlobalMemory& memory;
  uint32_t number;                     // unlike any other grid's or block's
  std::function<void(uint64_t)> sleep; // ns
  uint64_t limit;                      // of instructions
  uint64_t steps = 0;                  // so far
  Traffic* traffic = nullptr;          // if somebody asks for it
};

struct Block {
  Grid& grid;
  SharedMemory& shared;
  uint32_t number;
  Dim3 index;
  uint16_t epoch = 0; // barriers so far
};

/// The lanes at one place of the program.
struct Group {
  uint32_t pc;
  uint32_t lanes;
  bool waiting = false; // for other lanes, in an exchange or at a barrier
};

/// The values of an operand in the lanes of a warp.
template <class T>
struct Lanes {
  T* values;
  T get(uint32_t lane) const {
    return values[lane];
  }
  void set(uint32_t lane, T value) const {
    values[lane] = value;
  }
};
template <>
struct Lanes<bool> {
  uint32_t* values;
  bool get(uint32_t lane) const {
    return (*values >> lane & 1) != 0;
  }
  void set(uint32_t lane, bool value) const {
    *values = (*values & ~(1u << lane)) | uint32_t{value} << lane;
  }
};

struct Warp {
  explicit Warp(Block& of) : block(of) {}

  Block& block;
  std::byte* bases[2] = {nullptr, nullptr}; // registers, constants
  uint32_t* defined = nullptr;              // by number of register: the lanes that have a value
  uint32_t first_thread = 0;                // of the block
  uint32_t present = 0;                     // lanes that are threads
  uint32_t exited = 0;
  uint32_t carry = 0;
  uint16_t epoch = 0; // bar.warp.sync so far
  std::vector<Group> groups;
  std::vector<std::byte> local;       // local_bytes per lane
  std::vector<uint8_t> local_written; // a byte says whether that of `local` has a value
  std::array<Copies, 32> copies;      // by lane

  template <class T>
  Lanes<T> lanes(const Operand& operand) const {
    using Stored = std::conditional_t<std::is_same_v<T, bool>, uint32_t, T>;
    return {reinterpret_cast<Stored*>(bases[operand.constant] + operand.offset)};
  }
  /// A value of any width, extended by zeros.
  uint64_t get(const Operand& operand, uint32_t lane) const;
  void set(const Operand& operand, uint32_t lane, uint64_t value) const;

  /// Throws Violation(kUninitialised) unless the operand has a value in these lanes.
  void demand(const Operand& operand, uint32_t mask) const;
  bool isDefined(const Operand& operand, uint32_t lane) const {
    return (defined[operand.number] >> lane & 1) != 0;
  }
  void define(const Operand& operand, uint32_t lane, bool known) const {
    Lanes<bool>{&defined[operand.number]}.set(lane, known);
  }

  Dim3 thread(uint32_t lane) const;
  Accessor accessor(uint32_t lane) const {
    return {
        block.grid.number,
        block.number,
        static_cast<uint16_t>(first_thread + lane),
        block.epoch,
        epoch};
  }
};

/// Calls body(lane) for the lanes of a mask.
template <class Body>
void forLanes(uint32_t mask, const Body& body) {
  if (mask == ~0u) {
    for (uint32_t lane = 0; lane < 32; ++lane) body(lane);
    return;
  }
  for (; mask != 0; mask &= mask - 1) body(static_cast<uint32_t>(std::countr_zero(mask)));
}

/// The same; a violation in the body names the lane.
template <class Body>
void forNamedLanes(uint32_t mask, const Body& body) {
  forLanes(mask, [&](uint32_t lane) {
    try {
      body(lane);
    } catch (Violation& violation) {
      violation.lane = static_cast<int32_t>(lane);
      throw;
    }
  });
}

/// Runs the warp until its threads have exited (false), or all wait at one barrier (true). Throws
/// Violation; `at` is then the instruction.
bool advance(Warp& warp, const Instruction*& at);
/// The barrier at which the warp waits.
const Instruction& barrierOf(const Warp& warp);
/// Lets it go on.
void passBarrier(Warp& warp);

} // namespace puone::ptx
