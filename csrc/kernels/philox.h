// SPDX-License-Identifier: BSD-3-Clause
// Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11): a function
// from a 128-bit counter and a 64-bit key to 128 random bits. It has no state: any thread can
// compute any number of the sequence.
#pragma once

#include <cstdint>

#include "kernels/isa.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {

namespace philox_constants {

// Of the paper: the factors of the words 0 and 2, and what the key grows by in each round.
constexpr uint32_t kEven = 0xd2511f53, kOdd = 0xcd9e8d57;
constexpr uint32_t kStep0 = 0x9e3779b9; // the golden ratio
constexpr uint32_t kStep1 = 0xbb67ae85; // sqrt(3) - 1

} // namespace philox_constants

struct PhiloxBlock {
  uint32_t words[4];
};

/// The block of the counter high:low under `key`.
PUONE_FN PhiloxBlock philox(uint64_t low, uint64_t high, uint64_t key) {
  using namespace philox_constants;
  uint32_t c0 = static_cast<uint32_t>(low), c1 = static_cast<uint32_t>(low >> 32);
  uint32_t c2 = static_cast<uint32_t>(high), c3 = static_cast<uint32_t>(high >> 32);
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
#ifndef PUONE_SIMT
#pragma GCC unroll 10
#endif
  for (int round = 0; round < 10; ++round) {
    const uint64_t even = uint64_t{kEven} * c0;
    const uint64_t odd = uint64_t{kOdd} * c2;
    c0 = static_cast<uint32_t>(odd >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(odd);
    c2 = static_cast<uint32_t>(even >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(even);
    k0 += kStep0;
    k1 += kStep1;
  }
  return {{c0, c1, c2, c3}};
}

} // namespace puone::kernels::PUONE_ISA
