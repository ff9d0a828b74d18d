// SPDX-License-Identifier: BSD-3-Clause
// Copies on a host, row by row; by tiles where the operands run along different dimensions.
#pragma once

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "kernels/args.h"
#include "kernels/bits.h"
#include "kernels/cast.h"
#include "kernels/strided.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {
namespace copying {

/// A row of elements of T's size; strides in bytes.
template <class T>
void copyRow(
    unsigned char* __restrict out,
    int64_t out_stride,
    const unsigned char* __restrict in,
    int64_t in_stride,
    int64_t n) {
  if (out_stride == sizeof(T) && in_stride == sizeof(T)) {
    std::memcpy(out, in, static_cast<size_t>(n) * sizeof(T));
  } else if (out_stride == sizeof(T)) {
    for (int64_t i = 0; i < n; ++i) store(out + i * sizeof(T), load<T>(in + i * in_stride));
  } else {
    for (int64_t i = 0; i < n; ++i) store(out + i * out_stride, load<T>(in + i * in_stride));
  }
}

/// Applies conj and neg while gathering a strided row into a dense one.
template <class T>
void adjustRow(
    unsigned char* __restrict out,
    const unsigned char* __restrict in,
    int64_t in_stride,
    int64_t n,
    bool conj,
    bool neg) {
  for (int64_t i = 0; i < n; ++i) {
    T value = load<T>(in + i * in_stride);
    if (conj) value = conjugated(value);
    if (neg) value = negated(value);
    store(out + i * sizeof(T), value);
  }
}

using AdjustFunction = void (*)(unsigned char*, const unsigned char*, int64_t, int64_t, bool, bool);

template <size_t... kIndex>
constexpr std::array<AdjustFunction, kTypes> adjustTable(std::index_sequence<kIndex...>) {
  return {adjustRow<std::tuple_element_t<kIndex, Types>>...};
}

constexpr auto kAdjustRows = adjustTable(std::make_index_sequence<kTypes>());

inline RowFunction copyRowOf(int32_t element_size) {
  return withBits(element_size, []<class T>(T) -> RowFunction { return copyRow<T>; });
}

/// The dimension along which the input is dense, if that is not 0 and copying by tiles is worth it:
/// rows along 0 would touch a cache line per element. Else 0.
inline int32_t transposedDimension(const LoopNest<2>& nest, int32_t in_size) {
  if (nest.stride(1) == in_size || nest.stride(1) == 0 || nest.sizes[0] < kTileD) return 0;
  for (int32_t d = 1; d < nest.ndim; ++d) {
    if (nest.strides[1][d] == in_size && nest.sizes[d] >= kTileD) return d;
  }
  return 0;
}

/// Reads each tile along the input's dense dimension, then casts it along the output's.
inline void forTilePairs(
    Launch& launch,
    const LoopNest<2>& nest,
    int32_t d,
    RowFunction copy_row,
    RowFunction gather,
    int64_t in_size) {
  forTiles(launch, nest, d, [&](const auto& data, int64_t n0, int64_t nd) {
    alignas(64) unsigned char tile[kTileD * kTile0 * 16];
    const int64_t row = kTile0 * in_size;
    for (int64_t i = 0; i < n0; ++i) {
      gather(tile + i * in_size, row, data[1] + i * nest.stride(1), in_size, nd);
    }
    for (int64_t j = 0; j < nd; ++j) {
      copy_row(data[0] + j * nest.strides[0][d], nest.stride(0), tile + j * row, in_size, n0);
    }
  });
}

inline void forRowPairs(
    Launch& launch, const LoopNest<2>& nest, RowFunction copy_row, int32_t in_size) {
  if (const int32_t d = transposedDimension(nest, in_size)) {
    forTilePairs(launch, nest, d, copy_row, copyRowOf(in_size), in_size);
    return;
  }
  forRows(launch, nest, [&](const auto& data, int64_t n) {
    copy_row(data[0], nest.stride(0), data[1], nest.stride(1), n);
  });
}

/// Applies conj and neg in pieces, through a small buffer of the input's type.
inline void forAdjustedRowPairs(
    Launch& launch, const LoopNest<2>& nest, RowFunction cast_row, const puone_copy_args& args) {
  constexpr int64_t kPiece = 256;
  const AdjustFunction adjust = kAdjustRows[args.in_dtype];
  const int32_t size = elementSize(args.in_dtype);
  forRows(launch, nest, [&](const auto& data, int64_t n) {
    alignas(16) unsigned char piece[kPiece * 16];
    for (int64_t i = 0; i < n; i += kPiece) {
      const int64_t m = std::min(kPiece, n - i);
      adjust(piece, data[1] + i * nest.stride(1), nest.stride(1), m, args.conj != 0, args.neg != 0);
      cast_row(data[0] + i * nest.stride(0), nest.stride(0), piece, size, m);
    }
  });
}

} // namespace copying

/// out = cast(f(in)), f being the arguments' conj and neg.
inline void copyElements(Launch& launch, const LoopNest<2>& nest, const puone_copy_args& args) {
  using namespace copying;
  const RowFunction cast_row = castRowOf(args.out_dtype, args.in_dtype);
  const int32_t in_size = elementSize(args.in_dtype);
  if (args.conj != 0 || args.neg != 0) {
    forAdjustedRowPairs(launch, nest, cast_row, args);
  } else {
    forRowPairs(launch, nest, cast_row, in_size);
  }
}

/// out = in, elements of `size` bytes.
inline void copyBytes(Launch& launch, const LoopNest<2>& nest, int32_t size) {
  copying::forRowPairs(launch, nest, copying::copyRowOf(size), size);
}

} // namespace puone::kernels::PUONE_ISA
