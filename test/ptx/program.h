// SPDX-License-Identifier: BSD-3-Clause
// A kernel ready to run: one flat list of instructions, with every called function copied to where
// it is called, so that a thread is a program counter and nothing else.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "memory.h"
#include "source.h"

namespace puone::ptx {

struct Warp;
struct Instruction;

/// Executes an instruction in these lanes.
using Run = void (*)(Warp& warp, const Instruction& instruction, uint32_t lanes);

enum class Width : uint8_t {
  kPredicate,
  k16,
  k32,
  k64
};
uint32_t widthBytes(Width width); // 0 for a predicate

/// A register, or a constant: the values of a warp's lanes, one behind the other; a predicate's are
/// the bits of a uint32_t.
struct Operand {
  uint32_t offset = 0; // in the warp's registers, or in the program's constants
  uint32_t number = 0; // of the register; 0: a constant
  Width width = Width::k32;
  bool constant = false;
};

/// What the scheduler has to do for an instruction.
enum class Flow : uint8_t {
  kNext,
  kBranch,
  kExit,
  kBarrier,  // all threads of the block
  kExchange, // the lanes that operand[dests] names
  kTrap
};

/// Whether a result has a value. Compilers let threads compute with registers that have none, as
/// long as nobody asks for the results.
enum class Known : uint8_t {
  kIfAll,    // its operands have
  kIfChosen, // selp: the condition, and the operand that it chooses
  kAnd,      // and.pred: a false that is known decides
  kOr,       // or.pred: a true that is known decides
  kItself    // the instruction itself says so, and asks for its operands
};

enum class Space : uint8_t {
  kGeneric,
  kGlobal,
  kShared,
  kLocal,
  kParameter
};

/// Generic addresses of the spaces that are no memory of the host's.
constexpr uint64_t kLocalWindow = 0xe000'0000'0000'0000;
constexpr uint64_t kParameterWindow = 0xd000'0000'0000'0000;
constexpr uint64_t kSharedWindow = 0xc000'0000'0000'0000;

struct Instruction {
  Run run = nullptr;
  Flow flow = Flow::kNext;
  Known known = Known::kIfAll;
  bool guarded = false;
  bool unless = false;
  uint8_t dests = 0; // the first of the operands
  uint8_t operands = 0;
  Operand guard;
  std::array<Operand, 16> operand;
  uint32_t target = 0; // of a branch
  uint32_t line = 0;
  uint64_t* count = nullptr;
  uint64_t option = 0; // what the instruction makes of it: a number of a barrier, a mode
  // Of an access to memory:
  Space space = Space::kGeneric;
  uint8_t bytes = 0; // of an element
  bool is_signed = false;
  bool strong = false; // volatile or relaxed
  int64_t offset = 0;
  uint64_t used = ~uint64_t{0};

  const Operand& source(uint32_t i) const {
    return operand[dests + i];
  }
};

struct Program {
  /// Decodes a module's entry. `globals`: where its variables are. Throws Violation.
  /// `counts`: by line, what executed instructions count in.
  Program(
      const Module& module,
      const std::string& entry,
      const std::map<std::string, uint64_t>& globals,
      uint64_t* counts);

  const Module& module;
  std::string name;
  uint64_t* counts;
  std::vector<Instruction> code;
  std::vector<std::byte> constants;
  uint32_t register_bytes = 0; // of a warp
  uint32_t registers = 1;      // number 0 is always defined
  uint32_t local_bytes = 0;    // of a thread
  uint32_t parameter_bytes = 0;
  struct Parameter {
    uint32_t offset, bytes;
  };
  std::vector<Parameter> parameters;
  std::vector<SharedMemory::Place> shared;
  uint32_t max_threads = 0;
};

} // namespace puone::ptx
