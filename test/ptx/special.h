// SPDX-License-Identifier: BSD-3-Clause
// Special registers (PTX ISA chapter 10), and mov of pieces (9.7.9.2).
#pragma once

#include <string>

#include "program.h"

namespace puone::ptx {

/// What reads it, for mov; NULL if there is none of this name.
Run specialRegister(const std::string& name);

/// mov d, {a, b}: the first piece is the lowest; and mov {a, b}, d. Instruction::bytes is a
/// piece's.
void packPieces(Warp& warp, const Instruction& in, uint32_t mask);
void unpackPieces(Warp& warp, const Instruction& in, uint32_t mask);

} // namespace puone::ptx
