// SPDX-License-Identifier: BSD-3-Clause
// The matrix product of a launch's arguments on host cores.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/args/matmul.h"
#include "kernels/compute.h"
#include "kernels/host/gemm.h"
#include "kernels/product.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {

/// A complex factor as a real one of twice the depth: first all of one part, then of the other.
template <class T>
class PartsFactor final : public Gemm<T>::Factor {
 public:
  struct Part {
    StridedFactor<T, T> factor;
    bool negated;
  };

  PartsFactor(const Part& first, const Part& second, int64_t k)
      : first_(first), second_(second), k_(k) {}

  void pack(T* out, int64_t row, int rows, int width, int64_t k, int64_t depth) const override {
    const int64_t in_first = std::clamp<int64_t>(k_ - k, 0, depth);
    pack(first_, out, row, rows, width, k, in_first);
    pack(second_, out + in_first * width, row, rows, width, k + in_first - k_, depth - in_first);
  }

 private:
  static void pack(
      const Part& part, T* out, int64_t row, int rows, int width, int64_t k, int64_t depth) {
    if (depth == 0) return;
    part.factor.pack(out, row, rows, width, k, depth);
    if (!part.negated) return;
    for (int64_t i = 0; i < depth * width; ++i) out[i] = -out[i];
  }

  Part first_;
  Part second_;
  int64_t k_;
};

template <class E>
class Product {
  using Part = ComputeReal<E>;
  using Storage = std::conditional_t<kIsComplex<E>, Part, E>; // of a part
  using Tile = typename Gemm<Part>::Tile;
  static constexpr int kParts = kIsComplex<E> ? 2 : 1;
  using Value = ComputeValue<E>;

 public:
  Product(Launch& launch, const puone_gemm_args& args)
      : args_(args),
        alpha_(valueOf<Value>(args.alpha)),
        beta_(valueOf<Value>(args.beta)),
        has_self_(hasSelf(args)),
        is_rectified_(isRectified(args)),
        out_(launch.resolve(args.out.data)),
        self_(has_self_ ? launch.resolve(args.self.data) : nullptr),
        a_(args.k > 0 ? launch.resolve(args.a.data)
                      : nullptr), // without elements there may be no memory
        b_(args.k > 0 ? launch.resolve(args.b.data) : nullptr) {}

  void run(Launch& launch) const {
    const Tiling<Part> tiling(args_.m, args_.n, args_.k * kParts, args_.batch);
    const int64_t grain = tiling.grain(args_.k * kParts);
    launch.forRanges(tiling.tiles() * args_.batch, grain, [&](int64_t begin, int64_t end) {
      typename Gemm<Part>::Scratch scratch;
      for (int64_t i = begin; i < end; ++i) {
        runTile(i / tiling.tiles(), tiling.tile(i % tiling.tiles()), scratch);
      }
    });
  }

 private:
  bool isPlain() const {
    if constexpr (kIsComplex<E> || sizeof(E) != sizeof(Part)) {
      return false;
    } else {
      return !has_self_ && !is_rectified_ && alpha_ == Part(1) &&
             args_.out.column_stride == sizeof(E) &&
             args_.out.row_stride % static_cast<int64_t>(sizeof(E)) == 0;
    }
  }

  static unsigned char* at(unsigned char* data, const puone_matrix& matrix, int64_t batch) {
    return data + batch * matrix.batch_stride;
  }

  void runTile(int64_t batch, const Tile& tile, typename Gemm<Part>::Scratch& scratch) const {
    const unsigned char* a = at(a_, args_.a, batch);
    const unsigned char* b = at(b_, args_.b, batch);
    unsigned char* out = at(out_, args_.out, batch) + tile.row * args_.out.row_stride +
                         tile.column * args_.out.column_stride;
    if constexpr (kParts == 1) {
      const StridedFactor<Part, Storage> left(a, args_.a.row_stride, args_.a.column_stride);
      const StridedFactor<Part, Storage> right(b, args_.b.column_stride, args_.b.row_stride);
      if (isPlain()) {
        const int64_t pitch = args_.out.row_stride / static_cast<int64_t>(sizeof(E));
        auto* sums = reinterpret_cast<Part*>(out);
        Gemm<Part>::multiply(left, right, tile, args_.k, sums, pitch, false, scratch);
        return;
      }
      Part sums[Gemm<Part>::kTileRows * Gemm<Part>::kTileColumns];
      Gemm<Part>::multiply(left, right, tile, args_.k, sums, tile.columns, false, scratch);
      finish(batch, tile, out, sums, nullptr);
    } else {
      const puone_matrix& ma = args_.a;
      const puone_matrix& mb = args_.b;
      const auto left_part = [&](int index, bool negated) {
        return typename PartsFactor<Part>::Part{
            {a + index * sizeof(Part), ma.row_stride, ma.column_stride}, negated};
      };
      const auto right_part = [&](int index, bool negated) {
        return typename PartsFactor<Part>::Part{
            {b + index * sizeof(Part), mb.column_stride, mb.row_stride}, negated};
      };
      const bool b_conj = mb.conj != 0;
      const PartsFactor<Part> left(left_part(0, false), left_part(1, ma.conj != 0), args_.k);
      const PartsFactor<Part> for_real(right_part(0, false), right_part(1, !b_conj), args_.k);
      const PartsFactor<Part> for_imaginary(right_part(1, b_conj), right_part(0, false), args_.k);
      constexpr int64_t kElements = Gemm<Part>::kTileRows * Gemm<Part>::kTileColumns;
      Part real[kElements];
      Part imaginary[kElements];
      const int64_t k = args_.k * 2;
      Gemm<Part>::multiply(left, for_real, tile, k, real, tile.columns, false, scratch);
      Gemm<Part>::multiply(left, for_imaginary, tile, k, imaginary, tile.columns, false, scratch);
      finish(batch, tile, out, real, imaginary);
    }
  }

  /// out = beta * self + alpha * sums, or 0 where that is less
  void finish(
      int64_t batch,
      const Tile& tile,
      unsigned char* out,
      const Part* sums,
      const Part* imaginary) const {
    const unsigned char* self = self_;
    if (has_self_) {
      self += batch * args_.self.batch_stride + tile.row * args_.self.row_stride +
              tile.column * args_.self.column_stride;
    }
    for (int64_t i = 0; i < tile.rows; ++i) {
      if (has_self_) {
        finishRow<true>(out, self, sums, imaginary, tile.columns);
        self += args_.self.row_stride;
      } else {
        finishRow<false>(out, self, sums, imaginary, tile.columns);
      }
      out += args_.out.row_stride;
      sums += tile.columns;
      if constexpr (kIsComplex<E>) imaginary += tile.columns;
    }
  }

  template <bool kSelf>
  void finishRow(
      unsigned char* out,
      const unsigned char* self,
      const Part* sums,
      const Part* imaginary,
      int64_t n) const {
    const auto row = [&](int64_t out_stride, int64_t self_stride) {
      for (int64_t j = 0; j < n; ++j) {
        Value sum;
        if constexpr (kIsComplex<E>) {
          sum = {sums[j], imaginary[j]};
        } else {
          sum = sums[j];
        }
        sum = times(alpha_, sum);
        if constexpr (kSelf) {
          sum = plus(sum, times(beta_, cast<Value>(load<E>(self + j * self_stride))));
        }
        store(out + j * out_stride, cast<E>(is_rectified_ ? rectified(sum) : sum));
      }
    };
    const int64_t self_stride = kSelf ? args_.self.column_stride : sizeof(E);
    if (args_.out.column_stride == sizeof(E) && self_stride == sizeof(E)) {
      row(sizeof(E), sizeof(E));
    } else {
      row(args_.out.column_stride, self_stride);
    }
  }

  const puone_gemm_args& args_;
  Value alpha_;
  Value beta_;
  bool has_self_;
  bool is_rectified_;
  unsigned char* out_;
  unsigned char* self_;
  unsigned char* a_;
  unsigned char* b_;
};

/// The right factor is read in vectors along its rows, the left one element by element. If one
/// factor is thin, reading the other takes most of the time, and it should be read in place; else
/// the result's rows should be dense.
inline bool isBetterTransposed(const puone_gemm_args& args) {
  const auto is_dense = [](int64_t stride, int64_t other) { return stride <= other; };
  constexpr int64_t kThin = 32;
  if (args.m <= kThin && args.m < args.n) {
    return !is_dense(args.b.column_stride, args.b.row_stride);
  }
  if (args.n <= kThin && args.n < args.m) {
    return is_dense(args.a.row_stride, args.a.column_stride);
  }
  return !is_dense(args.out.column_stride, args.out.row_stride);
}

/// out = activation(beta * self + alpha * (a @ b)), of elements of type E.
template <class E>
void product(Launch& launch, const puone_gemm_args& args) {
  if (isBetterTransposed(args)) {
    const puone_gemm_args other = transposed(args);
    Product<E>(launch, other).run(launch);
  } else {
    Product<E>(launch, args).run(launch);
  }
}

} // namespace puone::kernels::PUONE_ISA
