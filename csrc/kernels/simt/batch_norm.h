// SPDX-License-Identifier: BSD-3-Clause
// Batch norm on a device. A row is a plane (the contiguous elements of one channel) or a part of a
// plane; where inner is 1, a row is the channels of one position.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "kernels/batch_norm.h"
#include "kernels/simt/columns.h"
#include "kernels/simt/map.h"
#include "kernels/simt/norm_sums.h"
#include "kernels/simt/rows.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {
namespace batch_norm {

/// Which channels the elements of a row belong to.
struct Channels {
  PUONE_FN int64_t of(int64_t row) const {
    return row / splits % channels;
  }

  int64_t channels;
  int64_t splits;  // rows of a plane
  bool neighbours; // element c of a row belongs to channel c; else all belong to one
};

/// How the elements are divided into rows.
struct Division {
  template <class X, class T>
  static Division of(
      Launch& launch,
      const puone_batch_norm_args& args,
      std::initializer_list<Elements<T>> elements) {
    if (args.inner == 1) {
      return {
          {args.channels, 1, true},
          {args.outer,
           args.channels,
           1,
           canVectorizeRows<X, T>(args.channels, elements),
           kTwoRows}};
    }
    // Few planes: split them, so that the whole device has work.
    constexpr int64_t kLeast = 4096;
    int64_t size = args.inner, planes = args.outer * args.channels, splits = 1;
    while (planes * splits < 8 * launch.multiprocessors() && size % 16 == 0 && size / 2 >= kLeast) {
      size /= 2;
      splits *= 2;
    }
    return {
        {args.channels, splits, false},
        {planes * splits, size, 1, canVectorizeRows<X, T>(size, elements), kTwoRows}};
  }

  Channels channels;
  Rows rows;
};

/// The values of `of` for the channels of a part's elements.
template <class X, int kElements, int kPart, class T>
PUONE_DEVICE void perChannel(
    T (&values)[kPart],
    const RowPart<X, kElements, kPart>& part,
    const Channels& channels,
    int64_t row,
    const T* of) {
  if (channels.neighbours) return part.readParameters(values, of);
  const T value = of[channels.of(row)];
  part.each([&](int k) { values[k] = value; });
}

template <class X>
struct Apply : RowBody<X, kTwoRows> {
  using Body = RowBody<X, kTwoRows>;
  using T = RowType<X>;
  using Body::kPart;
  template <int kElements>
  using Part = typename Body::template Part<kElements>;

  template <int kElements>
  PUONE_DEVICE void run(const Rows& rows, const RowTeam& team) const {
    for (int64_t first = 0; first < rows.size; first += rows.held()) {
      const Part<kElements> part(rows, team, first);
      T x[kPart], of[kPart];
      part.read(x, in);
      perChannel(of, part, channels, team.row(), affine);
      part.each([&](int k) { x[k] *= of[k]; });
      perChannel(of, part, channels, team.row(), affine + channels.channels);
      part.each([&](int k) { x[k] += of[k]; });
      part.write(x, out);
    }
  }

  Elements<T> in, out;
  Channels channels;
  const T* affine;
};

/// The terms of the gradient, per channel.
template <class Norm>
struct Coefficients {
  using T = typename Norm::T;

  PUONE_DEVICE void operator()(int64_t c) const {
    const T invstd = norm.invstdAt(c);
    T* const at = to + c;
    at[0] = norm.weightAt(c) * invstd;
    if (!norm.training) return;
    const T* const sums = norm.statistics;
    at[norm.channels] = norm.meanAt(c);
    at[2 * norm.channels] = sums[norm.channels + c] / norm.count * invstd * invstd;
    at[3 * norm.channels] = sums[c] / norm.count;
  }

  Norm norm;
  T* to; // scales, means, slopes, shifts
};

/// In training the statistics depend on the input too.
template <class X>
struct Backward : RowBody<X, kTwoRows> {
  using Body = RowBody<X, kTwoRows>;
  using T = RowType<X>;
  using Body::kPart;
  template <int kElements>
  using Part = typename Body::template Part<kElements>;

  template <int kElements>
  PUONE_DEVICE void run(const Rows& rows, const RowTeam& team) const {
    const int64_t row = team.row(), step = channels.channels;
    for (int64_t first = 0; first < rows.size; first += rows.held()) {
      const Part<kElements> part(rows, team, first);
      T dy[kPart], of[kPart];
      part.read(dy, gradient);
      if (training) {
        T x[kPart];
        part.read(x, in);
        perChannel(of, part, channels, row, coefficients + step);
        part.each([&](int k) { x[k] -= of[k]; });
        perChannel(of, part, channels, row, coefficients + 2 * step);
        part.each([&](int k) { x[k] *= of[k]; });
        perChannel(of, part, channels, row, coefficients + 3 * step);
        part.each([&](int k) { dy[k] = dy[k] - of[k] - x[k]; });
      }
      perChannel(of, part, channels, row, coefficients);
      part.each([&](int k) { dy[k] *= of[k]; });
      part.write(dy, grad_in);
    }
  }

  bool training;
  Elements<T> in, gradient, grad_in;
  Channels channels;
  const T* coefficients;
};

template <class Norm>
struct Means {
  PUONE_DEVICE void operator()(int64_t c) const {
    to[c] = norm.meanAt(c);
  }
  Norm norm;
  typename Norm::T* to;
};

/// For a row: the channel's mean, and 1.
template <class T>
struct RowNormal {
  PUONE_DEVICE Pair<T, T> operator()(int64_t row) const {
    return {means[channels.of(row)], T(1)};
  }
  Channels channels;
  const T* means;
};

/// The summands: the gradient, and its product with the centred input.
template <class T>
struct ElementTerms {
  PUONE_DEVICE TwoSums operator()(int64_t row, int64_t column) const {
    const int64_t at = row * channels + column;
    const T dy = gradient.at(at);
    return {static_cast<double>(dy), static_cast<double>(dy * (in.at(at) - means[column]))};
  }
  Elements<T> in, gradient;
  int64_t channels;
  const T* means;
};
template <class T>
struct RowTerms {
  PUONE_DEVICE TwoSums operator()(int64_t row, int64_t column) const {
    const int64_t plane = row / channels.splits * channels.channels + column;
    const int64_t at = plane * channels.splits + row % channels.splits;
    return {static_cast<double>(sums[at]), static_cast<double>(sums[rows + at])};
  }
  Channels channels;
  const T* sums;
  int64_t rows;
};

template <class Norm>
struct KeepSums {
  PUONE_DEVICE void operator()(int64_t /*split*/, int64_t column, const TwoSums& sums) const {
    norm.keepSums(column, sums.first, sums.second);
  }
  Norm norm;
};

template <class X, class P>
void apply(Launch& launch, const puone_batch_norm_args& args, const BatchNorm<X, P>& norm) {
  using T = RowType<X>;
  const Elements<T> in(launch, args.in, args.dtype), out(launch, args.out, args.dtype);
  const Elements<T> affine(launch, args.affine, kDtype<T>);
  const auto division = Division::of<X, T>(launch, args, {in, out, affine});
  forRows(launch, division.rows, Apply<X>{{}, in, out, division.channels, norm.affine});
}

template <class X, class P>
void sums(Launch& launch, const puone_batch_norm_args& args, const BatchNorm<X, P>& norm) {
  using T = RowType<X>;
  using Norm = BatchNorm<X, P>;
  const Elements<T> in(launch, args.in, args.dtype), gradient(launch, args.out, args.dtype);
  const auto scratch = [&](int64_t n) {
    return static_cast<T*>(launch.scratch(static_cast<size_t>(n) * sizeof(T)));
  };
  T* const means = scratch(args.channels);
  map(launch, args.channels, Means<Norm>{norm, means});
  const KeepSums<Norm> keep{norm};
  if (args.inner == 1) {
    const ElementTerms<T> terms{in, gradient, args.channels, means};
    return columnSums(launch, args.outer, args.channels, terms, keep);
  }
  const auto [channels, rows] = Division::of<X, T>(launch, args, {in, gradient});
  T* const of_rows = scratch(2 * rows.count);
  forRows(launch, rows, PlaneSums<X, RowNormal<T>>{{}, in, gradient, {channels, means}, of_rows});
  const RowTerms<T> terms{channels, of_rows, rows.count};
  columnSums(launch, args.outer * channels.splits, args.channels, terms, keep);
}

template <class X, class P>
void backward(Launch& launch, const puone_batch_norm_args& args, const BatchNorm<X, P>& norm) {
  using T = RowType<X>;
  using Norm = BatchNorm<X, P>;
  const Elements<T> in(launch, args.in, args.dtype), gradient(launch, args.out, args.dtype);
  const Elements<T> grad_in(launch, args.grad_in, args.dtype);
  auto* const coefficients =
      static_cast<T*>(launch.scratch(4 * static_cast<size_t>(args.channels) * sizeof(T)));
  map(launch, args.channels, Coefficients<Norm>{norm, coefficients});
  const auto division = Division::of<X, T>(launch, args, {in, gradient, grad_in});
  forRows(
      launch,
      division.rows,
      Backward<X>{{}, norm.training, in, gradient, grad_in, division.channels, coefficients});
}

} // namespace batch_norm

inline void batchNormApply(Launch& launch, const puone_batch_norm_args& args) {
  withNorm<BatchNorm>(
      launch, args, [&](const auto& norm) { batch_norm::apply(launch, args, norm); });
}

inline void batchNormBackwardSums(Launch& launch, const puone_batch_norm_args& args) {
  withNorm<BatchNorm>(
      launch, args, [&](const auto& norm) { batch_norm::sums(launch, args, norm); });
}

inline void batchNormBackward(Launch& launch, const puone_batch_norm_args& args) {
  withNorm<BatchNorm>(
      launch, args, [&](const auto& norm) { batch_norm::backward(launch, args, norm); });
}

} // namespace puone::kernels::PUONE_ISA
