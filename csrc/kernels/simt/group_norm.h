// SPDX-License-Identifier: BSD-3-Clause
// Group norm on a device: a team per group. Groups that fit into its registers are read once.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/args/normalization.h"
#include "kernels/simt/columns.h"
#include "kernels/simt/norm_sums.h"
#include "kernels/simt/rows.h"
#include "kernels/simt/strided.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {
namespace group_norm {

template <class X>
struct Norm {
  using T = RowType<X>;

  Norm(Launch& launch, const puone_group_norm_args& args)
      : groups(args.groups),
        channels(args.channels),
        inner(args.inner),
        size(args.channels * args.inner),
        count(args.rows * args.groups),
        divider(static_cast<uint32_t>(std::min<int64_t>(args.inner, kMaxElements - 1))),
        epsilon(static_cast<T>(args.epsilon)),
        in(launch, args.in, args.dtype),
        out(launch, args.out, args.dtype),
        weight(launch, args.weight, args.parameter_dtype),
        bias(launch, args.bias, args.parameter_dtype),
        mean(launch, args.mean, args.statistics_dtype),
        rstd(launch, args.rstd, args.statistics_dtype),
        grad_in(launch, args.grad_in, args.dtype),
        grad_weight(launch, args.grad_weight, args.parameter_dtype),
        grad_bias(launch, args.grad_bias, args.parameter_dtype) {}

  /// One row per group. A vector lies in one channel, or each channel has one element.
  Rows rows(int part) const {
    const int64_t run = inner == 1 ? channels : inner;
    return {count, size, 1, canVectorizeRows<X, T>(run, {in, out, weight, bias, grad_in}), part};
  }

  /// The values of `of` for the channels of a part of group `group`; `other` if `of` is missing.
  template <int kElements, int kPart>
  PUONE_DEVICE void ofNeighbours(
      T (&values)[kPart],
      const RowPart<X, kElements, kPart>& part,
      int64_t group,
      const Elements<T>& of,
      T other) const {
    if (of.data != nullptr) return part.readParameters(values, of, group % groups * channels);
    part.each([&](int k) { values[k] = other; });
  }
  /// The same, where a channel has several elements.
  template <int kElements, int kPart>
  PUONE_DEVICE void ofChannels(
      T (&values)[kPart],
      const RowPart<X, kElements, kPart>& part,
      int64_t group,
      const Elements<T>& of,
      T other) const {
    const int64_t channel = group % groups * channels + part.first() / inner;
    const int64_t into = part.first() % inner;
    T value = other;
    part.each([&](int k) {
      if (of.data != nullptr && part.startsVector(k)) {
        value = of.at(channel + quotient(into + part.offset(k)));
      }
      values[k] = value;
    });
  }
  /// at / inner, for positions less than a piece after the first channel.
  PUONE_DEVICE int64_t quotient(int64_t at) const {
    if (inner >= int64_t{kTwoRows} * kMaxBlockThreads) return at < inner ? 0 : 1;
    auto index = static_cast<uint32_t>(at);
    return divider.divide(index);
  }

  int64_t groups, channels, inner, size;
  int64_t count;   // groups of all rows
  Divider divider; // division by `inner`
  T epsilon;
  Elements<T> in, out, weight, bias, mean, rstd, grad_in, grad_weight, grad_bias;
};

/// Number, mean and sum of squared deviations (Chan, Golub and LeVeque, "Updating formulae and a
/// pairwise algorithm for computing sample variances", 1979).
template <class T>
struct Moments {
  T n, mean, squares;
};
struct Merge {
  template <class T>
  PUONE_FN Moments<T> operator()(const Moments<T>& a, const Moments<T>& b) const {
    const T n = a.n + b.n;
    if (n == 0) return a;
    const T share = b.n / n, delta = b.mean - a.mean;
    return {n, a.mean + delta * share, a.squares + b.squares + delta * delta * a.n * share};
  }
};

/// kNeighbours: a channel has one element.
template <class X, bool kNeighbours>
struct Forward : RowBody<X, kNeighbours ? kOneRow : kTwoRows> {
  using Body = RowBody<X, kNeighbours ? kOneRow : kTwoRows>;
  using T = RowType<X>;
  using Body::kPart;
  template <int kElements>
  using Part = typename Body::template Part<kElements>;

  template <int kElements>
  PUONE_DEVICE void run(const Rows& rows, const RowTeam& team) const {
    const auto size = static_cast<T>(rows.size);
    T x[kPart];
    if (rows.areHeld()) {
      const Part<kElements> part(rows, team, 0);
      part.read(x, norm.in);
      T sum = 0, squares = 0;
      part.each([&](int k) { sum += x[k]; });
      const T center = team.all(sum, Plus()) / size;
      part.each([&](int k) { squares += (x[k] - center) * (x[k] - center); });
      write(part, x, team.row(), center, scaleOf(team, center, team.all(squares, Plus()) / size));
      return;
    }
    const Moments<T> moments = momentsOf<kElements>(rows, team);
    const T scale = scaleOf(team, moments.mean, moments.squares / size);
    for (int64_t first = 0; first < rows.size; first += rows.held()) {
      const Part<kElements> part(rows, team, first);
      part.read(x, norm.in);
      write(part, x, team.row(), moments.mean, scale);
    }
  }

  /// The factor that makes the variance 1. Keeps it, and the mean, for the gradient.
  PUONE_DEVICE T scaleOf(const RowTeam& team, T center, T variance) const {
    const T scale = T(1) / std::sqrt(variance + norm.epsilon);
    if (team.isFirst()) {
      norm.mean.put(team.row(), center);
      norm.rstd.put(team.row(), scale);
    }
    return scale;
  }

  template <int kElements>
  PUONE_DEVICE void write(
      const Part<kElements>& part, T (&x)[kPart], int64_t group, T center, T scale) const {
    if constexpr (kNeighbours) {
      const int64_t start = group % norm.groups * norm.channels;
      part.writeWith(x, norm.out, norm.weight, norm.bias, start, [=](T value, T weight, T bias) {
        return (value - center) * scale * weight + bias;
      });
    } else {
      T of[kPart];
      norm.ofChannels(of, part, group, norm.weight, T(1));
      part.each([&](int k) { x[k] = (x[k] - center) * scale * of[k]; });
      norm.ofChannels(of, part, group, norm.bias, T(0));
      part.each([&](int k) { x[k] += of[k]; });
      part.write(x, norm.out);
    }
  }

  template <int kElements>
  PUONE_DEVICE Moments<T> momentsOf(const Rows& rows, const RowTeam& team) const {
    Moments<T> moments{0, 0, 0};
    for (int64_t first = 0; first < rows.size; first += rows.held()) {
      const Part<kElements> part(rows, team, first);
      T x[kPart], n = 0, sum = 0, squares = 0;
      part.read(x, norm.in);
      part.each([&](int k) {
        n += 1;
        sum += x[k];
      });
      const T mean = n > 0 ? sum / n : T(0);
      part.each([&](int k) { squares += (x[k] - mean) * (x[k] - mean); });
      moments = Merge()(moments, Moments<T>{n, mean, squares});
    }
    return team.all(moments, Merge());
  }

  Norm<X> norm;
};

/// The input's gradient, where a channel has one element.
template <class X>
struct Backward : RowBody<X, kTwoRows> {
  using Body = RowBody<X, kTwoRows>;
  using T = RowType<X>;
  using Body::kPart;
  template <int kElements>
  using Part = typename Body::template Part<kElements>;

  template <int kElements>
  PUONE_DEVICE void run(const Rows& rows, const RowTeam& team) const {
    const T center = team.isThere() ? norm.mean.at(team.row()) : T(0);
    const T scale = team.isThere() ? norm.rstd.at(team.row()) : T(0);
    T x[kPart], dy[kPart];
    Pair<T, T> sums{0, 0};
    for (int64_t first = 0; first < rows.size; first += rows.held()) {
      const Part<kElements> part(rows, team, first);
      read(x, dy, part, team.row(), center, scale);
      part.each([&](int k) {
        sums.first += dy[k];
        sums.second += dy[k] * x[k];
      });
    }
    sums = team.all(sums, Plus());
    const T n = static_cast<T>(rows.size), shift = sums.first / n, slope = sums.second / n;
    for (int64_t first = 0; first < rows.size; first += rows.held()) {
      const Part<kElements> part(rows, team, first);
      if (!rows.areHeld()) read(x, dy, part, team.row(), center, scale);
      part.each([&](int k) { x[k] = (dy[k] - shift - x[k] * slope) * scale; });
      part.write(x, norm.grad_in);
    }
  }

  /// The normalised input; the gradient times the weight.
  template <int kElements>
  PUONE_DEVICE void read(
      T (&x)[kPart], T (&dy)[kPart], const Part<kElements>& part, int64_t group, T center, T scale)
      const {
    T weight[kPart];
    part.read(x, norm.in);
    part.read(dy, norm.out);
    norm.ofNeighbours(weight, part, group, norm.weight, T(1));
    part.each([&](int k) {
      x[k] = (x[k] - center) * scale;
      dy[k] *= weight[k];
    });
  }

  Norm<X> norm;
};

/// Mean and rstd of a plane (a channel of a group).
template <class X>
struct PlaneNormal {
  using T = RowType<X>;

  PUONE_DEVICE Pair<T, T> operator()(int64_t plane) const {
    return {norm.mean.at(plane / norm.channels), norm.rstd.at(plane / norm.channels)};
  }
  Norm<X> norm;
};

/// The input's gradient, computed from the planes' sums.
template <class X>
struct PlaneBackward : RowBody<X, kTwoRows> {
  using Body = RowBody<X, kTwoRows>;
  using T = RowType<X>;
  using Body::kPart;
  template <int kElements>
  using Part = typename Body::template Part<kElements>;

  template <int kElements>
  PUONE_DEVICE void run(const Rows& rows, const RowTeam& team) const {
    const int64_t plane = team.isThere() ? team.row() : 0;
    const int64_t group = plane / norm.channels,
                  first_channel = group % norm.groups * norm.channels;
    Pair<T, T> all{0, 0};
    for (int64_t c = team.rank(); c < norm.channels; c += int64_t{1} << rows.team_bits) {
      const T weight = weightAt(first_channel + c);
      all.first += sums[group * norm.channels + c] * weight;
      all.second += sums[rows.count + group * norm.channels + c] * weight;
    }
    all = team.all(all, Plus());
    const T n = static_cast<T>(norm.size), shift = all.first / n, slope = all.second / n;
    const T center = norm.mean.at(group), scale = norm.rstd.at(group);
    const T weight = weightAt(first_channel + plane % norm.channels);
    for (int64_t first = 0; first < rows.size; first += rows.held()) {
      const Part<kElements> part(rows, team, first);
      T x[kPart], dy[kPart];
      part.read(x, norm.in);
      part.read(dy, norm.out);
      part.each([&](int k) {
        x[k] = (dy[k] * weight - shift - (x[k] - center) * scale * slope) * scale;
      });
      part.write(x, norm.grad_in);
    }
  }
  PUONE_DEVICE T weightAt(int64_t channel) const {
    return norm.weight.data ? norm.weight.at(channel) : T(1);
  }

  Norm<X> norm;
  const T* sums;
};

/// The summands of the parameters' gradients: elements, or the planes' sums.
template <class X>
struct ElementTerms {
  using T = RowType<X>;

  PUONE_DEVICE TwoSums operator()(int64_t row, int64_t column) const {
    const int64_t at = row * norm.groups * norm.channels + column;
    const int64_t group = norm.groups == 1 ? row : at / norm.channels;
    const T dy = norm.out.at(at);
    const T x = (norm.in.at(at) - norm.mean.at(group)) * norm.rstd.at(group);
    return {static_cast<double>(dy), static_cast<double>(dy * x)};
  }
  Norm<X> norm;
};
template <class T>
struct PlaneTerms {
  PUONE_DEVICE TwoSums operator()(int64_t row, int64_t column) const {
    const int64_t at = row * columns + column;
    return {static_cast<double>(sums[at]), static_cast<double>(sums[planes + at])};
  }
  const T* sums;
  int64_t columns, planes;
};

template <class T>
struct PutParameters {
  PUONE_DEVICE void operator()(int64_t /*split*/, int64_t column, const TwoSums& sums) const {
    if (bias.data) bias.put(column, static_cast<T>(sums.first));
    if (weight.data) weight.put(column, static_cast<T>(sums.second));
  }
  Elements<T> weight, bias;
};

template <class X>
void forward(Launch& launch, const puone_group_norm_args& args) {
  const Norm<X> norm(launch, args);
  if (norm.inner == 1) {
    forRows(launch, norm.rows(kOneRow), Forward<X, true>{{}, norm});
  } else {
    forRows(launch, norm.rows(kTwoRows), Forward<X, false>{{}, norm});
  }
}

template <class X>
void backward(Launch& launch, const puone_group_norm_args& args) {
  using T = RowType<X>;
  const Norm<X> norm(launch, args);
  const int64_t columns = norm.groups * norm.channels;
  const PutParameters<T> put{norm.grad_weight, norm.grad_bias};
  const bool has_parameters = norm.grad_weight.data || norm.grad_bias.data;
  if (norm.inner == 1) {
    if (norm.grad_in.data) forRows(launch, norm.rows(kTwoRows), Backward<X>{{}, norm});
    if (has_parameters) columnSums(launch, args.rows, columns, ElementTerms<X>{norm}, put);
    return;
  }
  auto* const sums = reinterpret_cast<T*>(launch.resolve(args.sums));
  const int64_t planes = norm.count * norm.channels;
  const Rows rows{
      planes,
      norm.inner,
      1,
      canVectorizeRows<X, T>(norm.inner, {norm.in, norm.out, norm.grad_in}),
      kTwoRows};
  forRows(launch, rows, PlaneSums<X, PlaneNormal<X>>{{}, norm.in, norm.out, {norm}, sums});
  if (norm.grad_in.data) forRows(launch, rows, PlaneBackward<X>{{}, norm, sums});
  if (has_parameters) {
    columnSums(launch, args.rows, columns, PlaneTerms<T>{sums, columns, planes}, put);
  }
}

} // namespace group_norm

inline void groupNormForward(Launch& launch, const puone_group_norm_args& args) {
  withFloating(args.dtype, [&]<class X>(X) { group_norm::forward<X>(launch, args); });
}

inline void groupNormBackward(Launch& launch, const puone_group_norm_args& args) {
  withFloating(args.dtype, [&]<class X>(X) { group_norm::backward<X>(launch, args); });
}

} // namespace puone::kernels::PUONE_ISA
