// SPDX-License-Identifier: BSD-3-Clause
// Copies whose output is dense along another dimension than their input. A block reads a square of
// elements along the one and writes it along the other; in between it is in shared memory.
#pragma once

#include <cstdint>

#include "kernels/launch.h"
#include "kernels/simt/strided.h"
#include "kernels/strided.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {
namespace detail {

constexpr int kSide = 32; // of a square
constexpr int kSquareLines = 8;
/// Shorter dimensions would leave most of a square empty.
constexpr int64_t kLeastSide = 16;

struct Squares {
  int64_t columns, rows;                // the output is dense along columns, the input along rows
  int64_t out_step, in_step;            // bytes from row to row, from column to column
  uint32_t column_squares, row_squares; // of a matrix
  ElementAddresses<2> matrices;         // of out, of in
};

template <class T>
PUONE_GLOBAL(kSide* kSquareLines, 1)
void transposeKernel(Squares squares) {
  PUONE_SHARED T square[kSide][kSide + 1]; // lines and columns of it are in different banks
  uint32_t index = blockIdx.x;
  const int64_t column = int64_t{index % squares.column_squares} * kSide;
  index /= squares.column_squares;
  const int64_t row = int64_t{index % squares.row_squares} * kSide;
  unsigned char* at[2];
  squares.matrices.at(index / squares.row_squares, at);

  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  const int across = static_cast<int>(threadIdx.x) % kSide;
  const int line = static_cast<int>(threadIdx.x) / kSide;
  PUONE_UNROLL
  for (int i = line; i < kSide; i += kSquareLines) {
    if (row + across >= squares.rows || column + i >= squares.columns) continue;
    const unsigned char* const from =
        at[1] + (row + across) * kSize + (column + i) * squares.in_step;
    square[i][across] = load<T>(from);
  }
  __syncthreads();
  PUONE_UNROLL
  for (int i = line; i < kSide; i += kSquareLines) {
    if (column + across >= squares.columns || row + i >= squares.rows) continue;
    unsigned char* const to = at[0] + (column + across) * kSize + (row + i) * squares.out_step;
    store(to, square[across][i]);
  }
}

/// The dimension along which the operand is dense; -1: none.
inline int32_t denseDimension(const LoopNest<2>& nest, int operand, int64_t size) {
  for (int32_t d = 0; d < nest.ndim; ++d) {
    if (nest.strides[operand][d] == size && nest.sizes[d] >= kLeastSide) return d;
  }
  return -1;
}

} // namespace detail

/// Copies elements of type T from operand 1 to operand 0, if it is a transposition.
template <class T>
bool transpose(Launch& launch, const LoopNest<2>& nest) {
  using namespace detail;
  const int32_t of_out = denseDimension(nest, 0, sizeof(T));
  const int32_t of_in = denseDimension(nest, 1, sizeof(T));
  if (of_out < 0 || of_in < 0 || of_out == of_in || nest.elements() == 0) return false;
  const auto squares_of = [](int64_t length) {
    return static_cast<uint32_t>((length + kSide - 1) / kSide);
  };
  forPieces(nest, [&](const LoopNest<2>& piece, int64_t /*first*/) {
    LoopNest<2> matrices = piece;
    matrices.sizes[of_out] = matrices.sizes[of_in] = 1;
    const Squares squares{
        piece.sizes[of_out],
        piece.sizes[of_in],
        piece.strides[0][of_in],
        piece.strides[1][of_out],
        squares_of(piece.sizes[of_out]),
        squares_of(piece.sizes[of_in]),
        ElementAddresses<2>(matrices)};
    const int64_t blocks =
        int64_t{squares.column_squares} * squares.row_squares * matrices.elements();
    dialect::start<dialect::Threads::kCooperating>(
        launch.stream(),
        transposeKernel<T>,
        static_cast<uint32_t>(blocks),
        static_cast<uint32_t>(kSide * kSquareLines),
        squares);
  });
  return true;
}

} // namespace puone::kernels::PUONE_ISA
