// SPDX-License-Identifier: BSD-3-Clause
// ld, st, atom, red and ldmatrix (PTX ISA 9.7.9, 9.7.13.5 and 9.7.14.5.15), whose names have many
// optional parts.
#pragma once

#include <string>

#include "program.h"

namespace puone::ptx {

/// What the name of such an instruction says, besides what Instruction keeps.
struct AccessName {
  enum class Verb : uint8_t {
    kLoad,
    kStore,
    kAtomic,
    kReduce // an atomic operation without a result
  };
  Verb verb;
  uint32_t elements = 1; // of a vector
  uint32_t operands = 1; // of an atomic operation, besides the address
};

/// Whether the name is one of these; fills `in` as far as the name says. Throws Violation(kUnknown)
/// for a name of this kind that is not known.
bool decodeAccess(const std::string& word, Instruction& in, AccessName& name);

} // namespace puone::ptx
