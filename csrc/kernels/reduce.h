// SPDX-License-Identifier: BSD-3-Clause
// The reduce idiom: many elements of a strided operand become one, over any set of dimensions.
//
// A reduction is a class over the type it computes in. There are three kinds:
//
//   Fold<Op>      Op::step adds an element to a lane's partial result, Op::combine combines partial
//                 results, in a wider type
//   Extreme<Op>   the best element, and its position
//   Moments<T>    mean and sum of squared deviations
//
// They define the partial results and how these are combined; host/reduce.h and simt/reduce.h
// define how the elements are read. The pieces and the order in which they are combined depend only
// on the shape and the device: equal inputs give equal bits. Pieces are short and are combined in a
// wider type, which keeps float sums accurate.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

#include "kernels/args/reduction.h"
#include "kernels/cast.h"
#include "kernels/dimensions.h"
#include "kernels/elementwise.h"
#include "kernels/entry.h"
#include "kernels/isa.h"
#include "kernels/launch.h"
#include "kernels/target.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {

/// An element and its position; no element yet if the position is negative.
template <class T>
struct Found {
  T value;
  int64_t position;
};

template <class Op>
class Fold {
 public:
  using In = typename Op::In;
  using Gathered = typename Op::Wide;

  explicit Fold(const puone_reduce_args& args) : op(args) {}

  PUONE_FN Gathered nothing() const {
    return cast<Gathered>(op.identity());
  }
  PUONE_FN Gathered combine(Gathered a, Gathered b) const {
    return op.combine(a, b);
  }
  PUONE_FN auto finish(Gathered all, int64_t /*count*/) const {
    return op.finish(all);
  }

  Op op;
};

/// Op::better(a, b): whether `a` replaces `b`, which came before it.
template <class Op>
class Extreme {
 public:
  using In = typename Op::In;
  using Gathered = Found<In>;

  explicit Extreme(const puone_reduce_args& /*args*/) {}

  PUONE_FN Gathered nothing() const {
    return {In{}, -1};
  }
  /// `a` comes before `b`.
  PUONE_FN Gathered combine(Gathered a, Gathered b) const {
    if (a.position < 0) return b;
    return b.position >= 0 && Op::better(b.value, a.value) ? b : a;
  }
  PUONE_FN Pair<In, int64_t> finish(Gathered all, int64_t /*count*/) const {
    return {all.value, all.position};
  }
};

/// parameters: number to subtract from the number of elements; whether to take the square root.
template <class T>
class Moments {
 public:
  using In = T;
  struct Gathered {
    double count, mean, squares; // squares: the sum of (x - mean)^2
  };

  explicit Moments(const puone_reduce_args& args)
      : correction_(args.parameters[0]), root_(args.parameters[1] != 0) {}

  PUONE_FN Gathered nothing() const {
    return {0, 0, 0};
  }
  /// The moments of `count` elements, from sums of deviations from a value close to the mean.
  PUONE_FN static Gathered gathered(int64_t count, double middle, double off, double squares) {
    const double n = static_cast<double>(count);
    return {n, middle + off / n, squares - off * (off / n)};
  }
  /// Chan, Golub and LeVeque's update.
  PUONE_FN Gathered combine(Gathered a, Gathered b) const {
    if (a.count == 0) return b;
    if (b.count == 0) return a;
    const double count = a.count + b.count, delta = b.mean - a.mean;
    return {
        count,
        a.mean + delta * (b.count / count),
        a.squares + b.squares + delta * delta * (a.count * (b.count / count))};
  }
  PUONE_FN Pair<T, T> finish(Gathered all, int64_t count) const {
    const double n = static_cast<double>(count);
    const double variance = all.squares / std::max(0.0, n - correction_);
    const double mean = count == 0 ? static_cast<double>(NAN) : all.mean;
    return {static_cast<T>(root_ ? std::sqrt(variance) : variance), static_cast<T>(mean)};
  }

 private:
  double correction_;
  bool root_;
};

/// Whether elements must be read in the order of the dimensions, in which positions count.
template <class R>
constexpr bool kCountsPositions = false;
template <class Op>
constexpr bool kCountsPositions<Extreme<Op>> = true;

namespace detail {

/// The dimensions that are kept and those that are reduced, in order of increasing stride; with
/// `in_order`, the reduced ones keep their order.
struct ReducedSpace {
  ReducedSpace(const puone_reduce_args& args, bool in_order) {
    const auto by_stride = byStride(args.ndim, args.in.strides);
    for (int32_t i = 0; i < args.ndim; ++i) {
      const int32_t next = by_stride[static_cast<size_t>(i)], next_reduced = in_order ? i : next;
      if (!(args.reduced >> next & 1)) add(kept, args, next);
      if (args.reduced >> next_reduced & 1) add(reduced, args, next_reduced);
    }
    outputs = kept.elements();
    count = reduced.elements();
  }

  Dimensions kept, reduced;
  int64_t outputs, count;

 private:
  static void add(Dimensions& to, const puone_reduce_args& args, int32_t d) {
    to.add(args.sizes[d], {args.in.strides[d], args.outs[0].strides[d], args.outs[1].strides[d]});
  }
};

template <class R>
void reduce(Launch& launch, const puone_reduce_args& args);

template <template <class> class R, class... T>
void dispatchReduce(Launch& launch, const puone_reduce_args& args, ComputeTypes<T...> /*types*/) {
  const bool found = ((args.compute == kDtype<T> && (reduce<R<T>>(launch, args), true)) || ...);
  if (!found) throw std::invalid_argument("the kernel does not compute in this dtype");
}

template <template <class> class R, class Types>
void runReduce(Launch& launch, const puone_reduce_args& args) {
  dispatchReduce<R>(launch, args, Types{});
}

} // namespace detail

/// The reduction R<T> with T in Types, for PUONE_KERNEL.
template <template <class> class R, class Types>
constexpr Implementation<puone_reduce_args> reduceKernel = detail::runReduce<R, Types>;

} // namespace puone::kernels::PUONE_ISA

#ifdef PUONE_SIMT
#include "kernels/simt/reduce.h"
#else
#include "kernels/host/reduce.h"
#endif
