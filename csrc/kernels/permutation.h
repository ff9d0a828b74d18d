// SPDX-License-Identifier: BSD-3-Clause
// Random permutations: Fisher and Yates' shuffle, as Durstenfeld wrote it down (Algorithm 235, CACM
// 1964), of all the ways to a permutation the one with the least traffic. From the numbers 0, 1 ...
// n - 1 in order: for each i, from the first to the last, place i and place partner(i), one of
// those up to i, change what they hold.
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
