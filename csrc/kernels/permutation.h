// SPDX-License-Identifier: BSD-3-Clause
// Random permutations: the Fisher-Yates shuffle in Durstenfeld's form (Algorithm 235, CACM 1964),
// which needs the least memory traffic. It starts with the numbers 0, 1 ... n - 1 in order. For
// each i in increasing order, position i and position partner(i) <= i exchange their numbers.
#pragma once

#include <cstdint>

#include "kernels/args/sampling.h"
#include "kernels/isa.h"
#include "kernels/target.h"
#include "kernels/uniform_bits.h"

namespace puone::kernels::PUONE_ISA {

PUONE_FN int64_t partner(uint64_t bits, int64_t i) {
  return static_cast<int64_t>(highProduct(bits, static_cast<uint64_t>(i) + 1));
}

} // namespace puone::kernels::PUONE_ISA

#ifdef PUONE_SIMT
#include "kernels/simt/permutation.h"
#else
#include "kernels/host/permutation.h"
#endif
