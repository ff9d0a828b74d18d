// SPDX-License-Identifier: BSD-3-Clause
// Philox blocks of consecutive elements on a host, one in each lane of a vector.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/host/vectors.h"
#include "kernels/philox.h"

namespace puone::kernels::PUONE_ISA {

/// The blocks philox(low, high + i, key) of i < n, which is at most kMost.
template <int64_t kMost>
class PhiloxBlocks {
 public:
  void compute(uint64_t low, uint64_t high, uint64_t key, int64_t n) {
    for (int64_t i = 0; i < n; i += kLanes64) {
      computeLanes(low, high + static_cast<uint64_t>(i), key, first_ + i, second_ + i);
    }
  }

  PhiloxBlock operator[](int64_t i) const {
    return {
        {static_cast<uint32_t>(first_[i]),
         static_cast<uint32_t>(first_[i] >> 32),
         static_cast<uint32_t>(second_[i]),
         static_cast<uint32_t>(second_[i] >> 32)}};
  }

 private:
  /// As philox(), with a word in the low half of each lane; high halves have anything.
  static void computeLanes(
      uint64_t low, uint64_t high, uint64_t key, uint64_t* first, uint64_t* second) {
    using namespace philox_constants;
    constexpr uint64_t kLow = 0xffffffff;
    Lanes64 c2;
    for (int64_t lane = 0; lane < kLanes64; ++lane) c2[lane] = high + static_cast<uint64_t>(lane);
    Lanes64 c0 = low - Lanes64{}, c1 = c0 >> 32, c3 = c2 >> 32;
    uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
      const Lanes64 even = productOfLowHalves(c0, uint64_t{kEven} - Lanes64{});
      const Lanes64 odd = productOfLowHalves(c2, uint64_t{kOdd} - Lanes64{});
      c0 = (odd >> 32) ^ c1 ^ uint64_t{k0};
      c1 = odd;
      c2 = (even >> 32) ^ c3 ^ uint64_t{k1};
      c3 = even;
      k0 += kStep0;
      k1 += kStep1;
    }
    const Lanes64 words01 = (c0 & kLow) | c1 << 32, words23 = (c2 & kLow) | c3 << 32;
    std::memcpy(first, &words01, sizeof(words01));
    std::memcpy(second, &words23, sizeof(words23));
  }

  static constexpr int64_t kRoom = (kMost + kLanes64 - 1) / kLanes64 * kLanes64;
  alignas(64) uint64_t first_[kRoom];  // words 0 and 1
  alignas(64) uint64_t second_[kRoom]; // words 2 and 3
};

} // namespace puone::kernels::PUONE_ISA
