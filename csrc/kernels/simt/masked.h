// SPDX-License-Identifier: BSD-3-Clause
// Masks on a device: one block per chunk finds the positions of its elements by a scan.
#pragma once

#include <cstdint>

#include "kernels/args/indexing.h"
#include "kernels/bits.h"
#include "kernels/blocks.h"
#include "kernels/elementwise.h"
#include "kernels/masked.h"
#include "kernels/prefix.h"
#include "kernels/simt/strided.h"
#include "kernels/strided.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {
namespace masked {

/// Contiguous elements per thread.
constexpr int64_t kRun = 8;
constexpr int64_t kRuns = kMaskChunk / kRun;

template <class T>
struct FillElement {
  PUONE_DEVICE void operator()(unsigned char* const* at, int64_t /*i*/) const {
    if (*at[1] == 0) return;
    store(at[0], immediate ? value : load<T>(at[2]));
  }
  T value;
  bool immediate;
};

/// A bit mask of the run's elements that are not zero.
template <class T>
PUONE_DEVICE uint32_t nonzerosOf(const unsigned char* in, int64_t first, int64_t n) {
  uint32_t bits = 0;
  PUONE_UNROLL
  for (int64_t k = 0; k < kRun; ++k) {
    if (first + k >= n) continue;
    const T value = load<T>(in + (first + k) * static_cast<int64_t>(sizeof(T)));
    bits |= isNonzero(value) ? 1u << k : 0u;
  }
  return bits;
}

PUONE_FN int64_t bitCount(uint32_t bits) {
  int64_t count = 0;
  PUONE_UNROLL
  for (int64_t k = 0; k < kRun; ++k) count += bits >> k & 1;
  return count;
}

template <class T>
struct CountChunk {
  PUONE_DEVICE void operator()(const Block& block, int64_t chunk) const {
    const int64_t first = chunk * kMaskChunk;
    // Neighbouring threads read neighbouring elements: integer sums may have any order.
    const int64_t length = detail::smaller(kMaskChunk, n - first);
    const int64_t found = block.reduce(
        length,
        int64_t{0},
        [=, this](int64_t i) {
          const T value = load<T>(in + (first + i) * static_cast<int64_t>(sizeof(T)));
          return int64_t{isNonzero(value) ? 1 : 0};
        },
        detail::AddSums());
    block.once([=, this] { offsets[chunk] = found; });
  }
  const unsigned char* in;
  int64_t n;
  int64_t* offsets;
};

/// Calls visit(i, k) for each i with in[i] != 0; it is the k-th such element.
template <class T, class Visit>
struct ForChunk {
  PUONE_DEVICE void operator()(const Block& block, int64_t chunk) const {
    const int64_t start = chunk * kMaskChunk, before = offsets[chunk];
    if (before == offsets[chunk + 1]) return;
    block.scan(
        kRuns,
        int64_t{0},
        [=, this](int64_t run) { return bitCount(nonzerosOf<T>(in, start + run * kRun, n)); },
        detail::AddSums(),
        [=, this](int64_t run, int64_t sum) {
          const int64_t first = start + run * kRun;
          const uint32_t bits = nonzerosOf<T>(in, first, n);
          int64_t k = before + sum - bitCount(bits);
          for (int64_t e = 0; e < kRun; ++e) {
            if ((bits >> e & 1) != 0) visit(first + e, k++);
          }
        });
  }
  const unsigned char* in;
  int64_t n;
  const int64_t* offsets;
  Visit visit;
};

template <class T, class Visit>
void forNonzeros(
    Launch& launch, const unsigned char* in, int64_t n, void* offsets, const Visit& visit) {
  const auto* const starts = reinterpret_cast<const int64_t*>(launch.resolve(offsets));
  blocks(launch, maskChunks(n), kMaskChunk, ForChunk<T, Visit>{in, n, starts, visit});
}

struct WriteCoordinates {
  explicit WriteCoordinates(Launch& launch, const puone_nonzero_args& args)
      : ndim(args.ndim),
        rows(args.out_rows),
        out(reinterpret_cast<int64_t*>(launch.resolve(args.out))) {
    for (int32_t d = 0; d < ndim; ++d) sizes[d] = args.sizes[d];
  }
  PUONE_DEVICE void operator()(int64_t i, int64_t k) const {
    if (k >= rows) return;
    for (int32_t d = ndim; d-- > 0;) {
      out[k * ndim + d] = d == 0 ? i : i % sizes[d];
      i /= d == 0 ? 1 : sizes[d];
    }
  }
  int32_t ndim;
  int64_t rows;
  int64_t* out;
  int64_t sizes[64];
};

/// Copies elements between an unpacked and a packed array.
template <class T, bool kPack>
struct MovePacked {
  PUONE_DEVICE void operator()(int64_t i, int64_t k) const {
    if (!check(k, limit)) return;
    constexpr auto kSize = static_cast<int64_t>(sizeof(T));
    if constexpr (kPack) {
      store(packed + k * kSize, load<T>(spread + i * kSize));
    } else {
      store(spread + i * kSize, load<T>(packed + k * kSize));
    }
  }
  unsigned char *spread, *packed;
  int64_t limit;
  IndexCheck check;
};

template <bool kPack>
void move(Launch& launch, const puone_packing_args& args) {
  unsigned char* const spread = launch.resolve(args.spread);
  unsigned char* const packed = args.packed_size == 0 ? nullptr : launch.resolve(args.packed);
  const IndexCheck check = packedCheck(launch);
  withBits(args.element_size, [&]<class T>(T) {
    forNonzeros<Bool>(
        launch,
        launch.resolve(args.mask),
        args.n,
        args.offsets,
        MovePacked<T, kPack>{spread, packed, args.packed_size, check});
  });
}

} // namespace masked

inline void maskedFill(Launch& launch, const puone_masked_fill_args& args) {
  const puone_operand& value = args.immediate != 0 ? args.out : args.value;
  const auto nest = loopNest(launch, args.ndim, args.sizes, args.out, args.mask, value);
  withBits(args.element_size, [&]<class T>(T) {
    forElements(
        launch, nest, masked::FillElement<T>{load<T>(args.immediate_value), args.immediate != 0});
  });
}

inline void countNonzeros(
    Launch& launch, const puone_nonzero_offsets_args& args, int64_t* offsets) {
  const unsigned char* const in = launch.resolve(args.in);
  withType(args.dtype, [&]<class T>(T) {
    blocks(launch, maskChunks(args.n), kMaskChunk, masked::CountChunk<T>{in, args.n, offsets});
  });
}

inline void nonzero(Launch& launch, const puone_nonzero_args& args) {
  const unsigned char* const in = launch.resolve(args.in);
  withType(args.dtype, [&]<class T>(T) {
    masked::forNonzeros<T>(
        launch, in, args.n, args.offsets, masked::WriteCoordinates(launch, args));
  });
}

inline void maskedPack(Launch& launch, const puone_packing_args& args) {
  masked::move<true>(launch, args);
}

inline void maskedUnpack(Launch& launch, const puone_packing_args& args) {
  masked::move<false>(launch, args);
}

} // namespace puone::kernels::PUONE_ISA
