// SPDX-License-Identifier: BSD-3-Clause
// Products by the vendor's library of factors that are not stored as matrices (convolutions): the
// factors are first written to memory as dense matrices. Worth it only where the library is much
// faster than the tiles of gemm.h: for 16-bit floats.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels/args/matmul.h"
#include "kernels/compute.h"
#include "kernels/launch.h"
#include "kernels/product.h"
#include "kernels/simt/gemm.h"
#include "kernels/simt/map.h"
#include "kernels/simt/product.h"
#include "kernels/simt/stored.h"
#include "kernels/simt/window.h"

namespace puone::kernels::PUONE_ISA {
namespace detail {

/// Writes rows of a factor to memory, in the order in which fetching them is fastest.
template <class T, class Factor>
struct StoreFactor {
  PUONE_DEVICE void operator()(int64_t i) const {
    int64_t inner = i;
    const int64_t outer = by_inner.divide(inner);
    const int64_t row = along_depth ? outer : inner, k = along_depth ? inner : outer;
    T value[1];
    factor.fetch(Piece{0, first_row + row, k, 0, 0, 1, 1}, value);
    stored.store(out, i, value[0]);
  }

  Stored<T> stored;
  Factor factor;
  unsigned char* out;
  WideDivider by_inner;
  int64_t first_row;
  bool along_depth;
};

/// Sets the elements of a dense matrix to those of their rows.
template <class T>
struct FillRows {
  PUONE_DEVICE void operator()(int64_t i) const {
    int64_t column = i;
    const int64_t row = by_columns.divide(column);
    stored.store(matrix, i, stored.load(of_rows, row));
  }

  Stored<T> stored;
  unsigned char* matrix;
  const unsigned char* of_rows;
  WideDivider by_columns;
};

/// Passes the elements of a dense product to `finish`.
template <class T, class Finish>
struct FinishMatrix {
  PUONE_DEVICE void operator()(int64_t i) const {
    int64_t column = i;
    const int64_t row = by_columns.divide(column);
    finish(0, row, first_column + column, stored.load(matrix, i));
  }

  Stored<T> stored;
  const unsigned char* matrix;
  WideDivider by_columns;
  int64_t first_column;
  Finish finish;
};

template <class Factor>
puone_matrix matrixOf(
    const Factor& factor, bool is_left, int64_t rows, int64_t depth, int64_t size) {
  const int64_t row = factor.isAlongDepth() ? depth * size : size;
  const int64_t k = factor.isAlongDepth() ? size : rows * size;
  return is_left ? puone_matrix{nullptr, row, k, 0, 0} : puone_matrix{nullptr, k, row, 0, 0};
}

template <class T, class Factor>
void storeFactor(
    Launch& launch,
    const Factor& factor,
    void* out,
    int64_t first_row,
    int64_t rows,
    int64_t depth) {
  const bool along_depth = factor.isAlongDepth();
  map(launch,
      rows * depth,
      StoreFactor<T, Factor>{
          {factor.stored},
          factor,
          static_cast<unsigned char*>(out),
          WideDivider(along_depth ? depth : rows, rows * depth),
          first_row,
          along_depth});
}

} // namespace detail

/// Calls finish(0, row, column, sum) for every element of a product of rows x columns. A bias of
/// `finish` is left to the library, which rounds it and the sum once. Returns false if the library
/// does not support the product; some elements may then be finished already.
template <class E, class Left, class Right, class Finish>
bool multiplyDense(
    Launch& launch,
    int64_t rows,
    int64_t columns,
    int64_t depth,
    const Left& left,
    const Right& right,
    const Finish& finish) {
  using T = ComputeValue<E>;
  constexpr auto kSize = static_cast<int64_t>(sizeof(E));
  constexpr double kLeastWork = 1 << 24;             // products
  constexpr int64_t kMostBytes = int64_t{256} << 20; // of a factor at a time
  if (static_cast<double>(rows) * columns * depth < kLeastWork) return false;

  const int64_t most = std::clamp<int64_t>(kMostBytes / (depth * kSize), 1, columns);
  puone_gemm_args args{};
  args.dtype = left.stored.dtype;
  args.batch = 1;
  args.m = rows;
  args.k = depth;
  args.alpha = {1, 0, 1};
  Finish rest = finish;
  const unsigned char* bias = nullptr;
  if constexpr (requires { rest.bias; }) bias = std::exchange(rest.bias, nullptr);
  if (bias != nullptr) args.beta = {1, 0, 1};
  args.a = detail::matrixOf(left, true, rows, depth, kSize);
  const auto cut = [&](int64_t n) {
    void* const data = args.b.data;
    args.n = n;
    args.out.row_stride = n * kSize;
    args.out.column_stride = kSize;
    args.b = detail::matrixOf(right, false, n, depth, kSize);
    args.b.data = data;
    return detail::libraryProduct(transposed(args), kSize);
  };
  const auto largest = cut(most);
  if (!largest || !launch.multiplies(*largest)) return false;

  args.a.data = launch.scratch(rows * depth * kSize);
  args.b.data = launch.scratch(most * depth * kSize);
  args.out.data = launch.scratch(rows * most * kSize);
  detail::storeFactor<T>(launch, left, args.a.data, 0, rows, depth);
  for (int64_t first = 0; first < columns; first += most) {
    const int64_t n = std::min(most, columns - first);
    const auto product = cut(n);
    detail::storeFactor<T>(launch, right, args.b.data, first, n, depth);
    auto* const out = static_cast<unsigned char*>(args.out.data);
    const WideDivider by_columns(n, rows * n);
    if (bias != nullptr) {
      map(launch, rows * n, detail::FillRows<T>{finish.stored, out, bias, by_columns});
    }
    if (!product || !launch.multiply(*product)) return false;
    map(launch,
        rows * n,
        detail::FinishMatrix<T, Finish>{finish.stored, out, by_columns, first, rest});
  }
  return true;
}

} // namespace puone::kernels::PUONE_ISA
