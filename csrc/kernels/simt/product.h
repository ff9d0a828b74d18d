// SPDX-License-Identifier: BSD-3-Clause
// The matrix product of a launch's arguments on a device: by the vendor's library if it supports
// the product, else by the tiles of gemm.h.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <type_traits>

#include "kernels/args/matmul.h"
#include "kernels/compute.h"
#include "kernels/launch.h"
#include "kernels/matrix_product.h"
#include "kernels/product.h"
#include "kernels/simt/gemm.h"
#include "kernels/simt/map.h"
#include "kernels/simt/scalar_tile.h"
#include "kernels/simt/stored.h"
#include "kernels/simt/tensor_tile.h"
#include "kernels/simt/vector.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {
namespace detail {

/// out = beta * self + alpha * sum
template <class T, class As>
struct FinishProduct {
  PUONE_DEVICE void operator()(int64_t image, int64_t row, int64_t column, T sum) const {
    stored.store(at(out, image, row, column), 0, result(image, row, column, sum));
  }

  PUONE_DEVICE T result(int64_t image, int64_t row, int64_t column, T sum) const {
    const T product = times(alpha, sum);
    if (!has_self) return product;
    return plus(product, times(beta, stored.load(at(self, image, row, column), 0)));
  }
  PUONE_DEVICE static unsigned char* at(
      const puone_matrix& matrix, int64_t image, int64_t row, int64_t column) {
    return static_cast<unsigned char*>(matrix.data) + image * matrix.batch_stride +
           row * matrix.row_stride + column * matrix.column_stride;
  }

  Stored<T, As> stored;
  puone_matrix out;
  puone_matrix self;
  T alpha;
  T beta;
  bool has_self;
};

/// The same of results of type E, 16 bytes at once where they lie side by side.
template <class E>
struct FinishRuns : FinishProduct<float, StoredOnlyAs<E>> {
  static constexpr int kRun = 16 / sizeof(E);

  PUONE_DEVICE bool inRuns(int64_t columns) const {
    const auto aligned = [](int64_t bytes) { return bytes % 16 == 0; };
    return this->out.column_stride == sizeof(E) && columns % kRun == 0 &&
           aligned(static_cast<int64_t>(reinterpret_cast<uintptr_t>(this->out.data))) &&
           aligned(this->out.row_stride) && aligned(this->out.batch_stride);
  }
  /// `sums` are aligned to 16 bytes.
  PUONE_DEVICE void run(int64_t image, int64_t row, int64_t column, const float* sums) const {
    float results[kRun];
    PUONE_UNROLL
    for (int e = 0; e < kRun; e += 4) readVector<float, 4>(results + e, sums + e);
    PUONE_UNROLL
    for (int e = 0; e < kRun; ++e) {
      results[e] = this->result(image, row, column + e, results[e]);
    }
    writeVector<E, kRun>(results, this->at(this->out, image, row, column));
  }
};

template <class E, class T = ComputeValue<E>>
void multiplyByTiles(Launch& launch, const puone_gemm_args& args) {
  constexpr bool kIsFloat = std::is_same_v<T, float>; // whose tiles are of one type of elements
  using As = std::conditional_t<kIsFloat, StoredOnlyAs<E>, StoredAs<T>>;
  As stored;
  if constexpr (!kIsFloat) stored.dtype = args.dtype;
  const auto factor = [&](const puone_matrix& matrix, int64_t row_stride, int64_t depth_stride) {
    const auto* const data = static_cast<const unsigned char*>(matrix.data);
    return StridedFactor<T, As>{
        {data, matrix.batch_stride, row_stride, depth_stride}, stored, matrix.conj != 0};
  };
  const auto left = factor(args.a, args.a.row_stride, args.a.column_stride);
  const auto right = factor(args.b, args.b.column_stride, args.b.row_stride);
  const FinishProduct<T, As> one_by_one{
      {stored}, args.out, args.self, valueOf<T>(args.alpha), valueOf<T>(args.beta), hasSelf(args)};
  using Finish = std::conditional_t<kIsFloat, FinishRuns<E>, FinishProduct<T, As>>;
  const Finish finish{one_by_one};
  const auto by = [&](const auto& of_left, const auto& of_right) {
    return [&]<class Tile>(Tile) {
      const TileGrid grid = tileGrid<Tile>(launch, args.batch, args.m, args.n, args.k);
      multiply<Tile>(launch, grid, of_left, of_right, finish);
    };
  };
  if constexpr (kIsFloat) {
    if (kIsStorageFloat<E> || args.allow_tf32 != 0) {
      const auto aligned_left = AlignedFactor<E>::of(left, args.batch);
      const auto aligned_right = AlignedFactor<E>::of(right, args.batch);
      if (aligned_left && aligned_right) {
        return withTensorTile<E, true>(args.m, by(*aligned_left, *aligned_right));
      }
      return withTensorTile<E, false>(args.m, by(left, right));
    }
  }
  if constexpr (!kIsStorageFloat<E>) withScalarTile<T>(args.m, by(left, right));
}

/// Tiles are used best by wide results, and among these by results with dense rows.
inline bool isBetterTransposed(const puone_gemm_args& args) {
  const bool is_flat = args.m <= kFlatRows, becomes_flat = args.n <= kFlatRows;
  if (is_flat != becomes_flat) return becomes_flat;
  return std::abs(args.out.column_stride) > std::abs(args.out.row_stride);
}

/// A matrix with dense columns, or a transposed one with dense rows.
struct DenseMatrix {
  bool transposed;
  int64_t leading;
  int64_t batch_stride; // elements
};

inline std::optional<DenseMatrix> denseMatrix(
    const puone_matrix& matrix, int64_t rows, int64_t columns, int64_t batch, int64_t size) {
  if (batch > 1 && matrix.batch_stride % size != 0) return std::nullopt;
  const int64_t batch_stride = batch > 1 ? matrix.batch_stride / size : 0;
  const auto form = [&](bool transposed) -> std::optional<DenseMatrix> {
    const int64_t length = transposed ? columns : rows;
    const int64_t count = transposed ? rows : columns;
    const int64_t step = transposed ? matrix.column_stride : matrix.row_stride;
    const int64_t leading = transposed ? matrix.row_stride : matrix.column_stride;
    if (length > 1 && step != size) return std::nullopt;
    if (count == 1) return DenseMatrix{transposed, length, batch_stride};
    if (leading % size != 0 || leading / size < length) return std::nullopt;
    return DenseMatrix{transposed, leading / size, batch_stride};
  };
  const auto plain = form(false);
  return plain ? plain : form(true);
}

inline std::optional<MatrixFactor> libraryFactor(
    const puone_matrix& matrix, int64_t rows, int64_t columns, int64_t batch, int64_t size) {
  const auto dense = denseMatrix(matrix, rows, columns, batch, size);
  if (!dense || (matrix.conj != 0 && !dense->transposed)) return std::nullopt;
  const Factor form = matrix.conj != 0    ? Factor::kConjugateTransposed
                      : dense->transposed ? Factor::kTransposed
                                          : Factor::kPlain;
  return MatrixFactor{matrix.data, form, dense->leading, dense->batch_stride};
}

/// The product in the form of a library's arguments, if it has one.
inline std::optional<MatrixProduct> libraryProduct(const puone_gemm_args& args, int64_t size) {
  if (args.k == 0) return std::nullopt;
  // Libraries do not read a and b then; here 0 * NaN is NaN.
  if (args.alpha.real == 0 && args.alpha.imaginary == 0) return std::nullopt;
  const auto out = denseMatrix(args.out, args.m, args.n, args.batch, size);
  const auto a = libraryFactor(args.a, args.m, args.k, args.batch, size);
  const auto b = libraryFactor(args.b, args.k, args.n, args.batch, size);
  if (!out || out->transposed || !a || !b) return std::nullopt;
  return MatrixProduct{
      static_cast<puone_dtype>(args.dtype),
      args.allow_tf32 != 0,
      args.m,
      args.n,
      args.k,
      args.batch,
      {args.alpha.real, args.alpha.imaginary},
      {args.beta.real, args.beta.imaginary},
      *a,
      *b,
      args.out.data,
      out->leading,
      out->batch_stride};
}

/// Whether `self` has one number for each row, of one matrix. It is not the result itself, which a
/// library may write before it has read all of the bias.
inline bool hasBias(const puone_gemm_args& args, int64_t size) {
  const bool is_plain = args.beta.real == 1 && args.beta.imaginary == 0 && args.batch == 1 &&
                        args.self.data != args.out.data;
  const bool is_dense = args.m == 1 || args.self.row_stride == size;
  return is_plain && is_dense && (args.n == 1 || args.self.column_stride == 0);
}

inline bool isSame(const puone_matrix& x, const puone_matrix& y) {
  return x.data == y.data && x.row_stride == y.row_stride && x.column_stride == y.column_stride &&
         x.batch_stride == y.batch_stride;
}

/// out = self: libraries add to the output.
template <class T>
struct CopySelf {
  PUONE_DEVICE void operator()(int64_t i) const {
    const int64_t column = i / rows;
    const auto at = [&](const puone_matrix& matrix) {
      return static_cast<unsigned char*>(matrix.data) + column / columns * matrix.batch_stride +
             i % rows * matrix.row_stride + column % columns * matrix.column_stride;
    };
    store(at(out), load<T>(at(self)));
  }
  puone_matrix out;
  puone_matrix self;
  int64_t rows;
  int64_t columns;
};

/// 0 takes the place of what is less. What was rounded is not rounded again by it.
template <class T>
struct Rectify {
  PUONE_DEVICE void operator()(int64_t i) const {
    const int64_t row = i / columns;
    auto* const at = static_cast<unsigned char*>(out.data) + row / rows * out.batch_stride +
                     row % rows * out.row_stride + i % columns * out.column_stride;
    store(at, cast<T>(rectified(cast<ComputeValue<T>>(load<T>(at)))));
  }
  puone_matrix out;
  int64_t rows;
  int64_t columns;
};

template <class E>
void prepareSelf(Launch& launch, const puone_gemm_args& args) {
  if (!hasSelf(args) || isSame(args.self, args.out)) return;
  map(launch, args.batch * args.m * args.n, CopySelf<E>{args.out, args.self, args.m, args.n});
}

/// By a library that adds a bias and rectifies itself.
template <class E>
bool multiplyWithEpilogue(Launch& launch, const puone_gemm_args& args) {
  const bool has_bias = hasBias(args, sizeof(E));
  if (!has_bias && !isRectified(args)) return false;
  auto product = libraryProduct(args, sizeof(E));
  if (!product) return false;
  product->rectified = isRectified(args);
  if (has_bias) {
    product->bias = args.self.data;
    product->beta[0] = 0;
  }
  if (!launch.multiplies(*product)) return false;
  if (!has_bias) prepareSelf<E>(launch, args);
  return launch.multiply(*product);
}

template <class E>
bool multiplyByLibrary(Launch& launch, const puone_gemm_args& args) {
  const auto product = libraryProduct(args, sizeof(E));
  if (!product || !launch.multiplies(*product)) return false;
  prepareSelf<E>(launch, args);
  return launch.multiply(*product);
}

/// out = beta * self + alpha * (a @ b), of elements of type E.
template <class E>
void multiplyAlone(Launch& launch, const puone_gemm_args& args, const puone_gemm_args& other) {
  if constexpr (!std::is_integral_v<E>) {
    if (multiplyByLibrary<E>(launch, args)) return;
    if (multiplyByLibrary<E>(launch, other)) return;
  }
  multiplyByTiles<E>(launch, isBetterTransposed(args) ? other : args);
}

} // namespace detail

/// out = activation(beta * self + alpha * (a @ b)), of elements of type E.
template <class E>
void product(Launch& launch, const puone_gemm_args& args) {
  const puone_gemm_args other = transposed(args);
  if constexpr (std::is_floating_point_v<ComputeValue<E>>) {
    if (detail::multiplyWithEpilogue<E>(launch, args)) return;
    if (detail::multiplyWithEpilogue<E>(launch, other)) return;
  }
  detail::multiplyAlone<E>(launch, args, other);
  if constexpr (std::is_floating_point_v<ComputeValue<E>>) {
    if (!isRectified(args)) return;
    map(launch, args.batch * args.m * args.n, detail::Rectify<E>{args.out, args.m, args.n});
  }
}

} // namespace puone::kernels::PUONE_ISA
