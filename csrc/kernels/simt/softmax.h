// SPDX-License-Identifier: BSD-3-Clause
// softmax on a device: one team of threads per row. Rows that fit into its registers are read once,
// longer ones twice.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/args/normalization.h"
#include "kernels/simt/rows.h"
#include "kernels/softmax.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {
namespace softmaxing {

struct Larger {
  template <class T>
  PUONE_FN T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};

template <class X>
struct Forward : RowBody<X, kOneRow> {
  using Body = RowBody<X, kOneRow>;
  using T = RowType<X>;
  using Body::kPart;
  template <int kElements>
  using Part = typename Body::template Part<kElements>;

  template <int kElements>
  PUONE_DEVICE void run(const Rows& rows, const RowTeam& team) const {
    T x[kPart];
    T mine = math.kLowest, sum = 0;
    for (int64_t first = 0; first < rows.size; first += rows.held()) {
      const Part<kElements> part(rows, team, first);
      part.read(x, in);
      T high = mine;
      part.each([&](int k) { high = Larger()(x[k], high); });
      if (!rows.areHeld()) sum = grown(part, x, sum, mine, high);
      mine = high;
    }
    const T top = team.all(mine, Larger());
    if (rows.areHeld()) {
      const Part<kElements> part(rows, team, 0);
      part.each([&](int k) {
        const T power = exponentialOrNan(x[k] - top);
        sum += power;
        if (!math.logarithm) x[k] = power;
      });
    } else if (mine != top) {
      sum *= exponentialOrNan(mine - top);
    }
    const T factor = math.normaliser(team.all(sum, Plus()));
    for (int64_t first = 0; first < rows.size; first += rows.held()) {
      const Part<kElements> part(rows, team, first);
      if (!rows.areHeld()) {
        part.read(x, in);
        if (!math.logarithm) part.each([&](int k) { x[k] = exponentialOrNan(x[k] - top); });
      }
      part.each([&](int k) { x[k] = math.logarithm ? x[k] - top - factor : x[k] * factor; });
      part.writeAny(x, out);
    }
  }

  /// Rescales `sum` from the maximum `low` to the maximum `high`, and adds exp(x - high).
  template <int kElements>
  PUONE_DEVICE T
  grown(const Part<kElements>& part, const T (&x)[kPart], T sum, T low, T high) const {
    if (high > low) sum *= exponentialOrNan(low - high);
    part.each([&](int k) {
      if (x[k] != math.kLowest) sum += exponentialOrNan(x[k] - high);
    });
    return sum;
  }

  SoftmaxMath<T> math;
  Elements<T> in, result, out;
};

template <class X>
struct Backward : RowBody<X, kTwoRows> {
  using Body = RowBody<X, kTwoRows>;
  using T = RowType<X>;
  using Body::kPart;
  template <int kElements>
  using Part = typename Body::template Part<kElements>;

  template <int kElements>
  PUONE_DEVICE void run(const Rows& rows, const RowTeam& team) const {
    T grad[kPart], y[kPart], sum = 0;
    for (int64_t first = 0; first < rows.size; first += rows.held()) {
      const Part<kElements> part(rows, team, first);
      part.read(grad, in);
      part.read(y, result);
      part.each([&](int k) { sum += math.term(grad[k], y[k]); });
    }
    sum = team.all(sum, Plus());
    for (int64_t first = 0; first < rows.size; first += rows.held()) {
      const Part<kElements> part(rows, team, first);
      if (!rows.areHeld()) {
        part.read(grad, in);
        part.read(y, result);
      }
      part.each([&](int k) { grad[k] = math.gradient(grad[k], y[k], sum); });
      part.writeAny(grad, out);
    }
  }

  SoftmaxMath<T> math;
  Elements<T> in, result, out;
};

template <template <class> class Pass, class X>
void runOf(Launch& launch, const puone_softmax_args& args) {
  using T = RowType<X>;
  const Elements<T> in(launch, args.in, args.in_dtype);
  const Elements<T> result(launch, args.result, args.in_dtype);
  const Elements<T> out(launch, args.out, args.out_dtype);
  const bool vectorized = args.inner == 1 && canVectorizeRows<X, T>(args.size, {in, result, out});
  forRows(
      launch,
      Rows(args.outer, args.size, args.inner, vectorized, Pass<X>::kPart),
      Pass<X>{{}, {args.logarithm != 0}, in, result, out});
}

template <template <class> class Pass>
void run(Launch& launch, const puone_softmax_args& args) {
  withFloating(args.in_dtype, [&]<class X>(X) { runOf<Pass, X>(launch, args); });
}

} // namespace softmaxing

inline void softmaxForward(Launch& launch, const puone_softmax_args& args) {
  softmaxing::run<softmaxing::Forward>(launch, args);
}

inline void softmaxBackward(Launch& launch, const puone_softmax_args& args) {
  softmaxing::run<softmaxing::Backward>(launch, args);
}

} // namespace puone::kernels::PUONE_ISA
