// SPDX-License-Identifier: BSD-3-Clause
// Prefix sums on a device: add up each chunk, compute prefix sums of the chunks' sums, then compute
// each chunk's prefix sums from there.
#pragma once

#include <cstdint>

#include "kernels/isa.h"
#include "kernels/launch.h"
#include "kernels/simt/blocks.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {

constexpr int64_t kPrefixChunk = 4096;

namespace detail {

PUONE_FN int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

struct AddSums {
  PUONE_FN int64_t operator()(int64_t a, int64_t b) const {
    return a + b;
  }
};

struct ChunkSum {
  PUONE_DEVICE void operator()(const Block& block, int64_t chunk) const {
    const int64_t* const in = values + chunk * kPrefixChunk;
    const int64_t length = smaller(kPrefixChunk, n - chunk * kPrefixChunk);
    const int64_t sum =
        block.reduce(length, int64_t{0}, [=](int64_t i) { return in[i]; }, AddSums());
    block.once([=, this] { sums[chunk] = sum; });
  }
  const int64_t* values;
  int64_t n;
  int64_t* sums;
};

struct ChunkPrefixes {
  PUONE_DEVICE void operator()(const Block& block, int64_t chunk) const {
    int64_t* const at = values + chunk * kPrefixChunk;
    const int64_t length = smaller(kPrefixChunk, n - chunk * kPrefixChunk);
    const int64_t before = sums == nullptr ? 0 : sums[chunk];
    block.scan(
        length,
        int64_t{0},
        [=](int64_t i) { return at[i]; },
        AddSums(),
        [=](int64_t i, int64_t sum) { at[i] = before + sum - at[i]; });
  }
  int64_t* values;
  int64_t n;
  const int64_t* sums; // of all values before each chunk; null: there is one chunk
};

} // namespace detail

inline void exclusiveSums(Launch& launch, int64_t* values, int64_t n) {
  const int64_t chunks = (n + kPrefixChunk - 1) / kPrefixChunk;
  int64_t* sums = nullptr;
  if (chunks > 1) {
    sums = static_cast<int64_t*>(launch.scratch(static_cast<size_t>(chunks) * sizeof(int64_t)));
    blocks(launch, chunks, kPrefixChunk, detail::ChunkSum{values, n, sums});
    exclusiveSums(launch, sums, chunks);
  }
  blocks(launch, chunks, kPrefixChunk, detail::ChunkPrefixes{values, n, sums});
}

} // namespace puone::kernels::PUONE_ISA
