// SPDX-License-Identifier: BSD-3-Clause
// softmax on a host: one block per row.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <type_traits>

#include "kernels/args/normalization.h"
#include "kernels/blocks.h"
#include "kernels/cast.h"
#include "kernels/row_math.h"
#include "kernels/softmax.h"

namespace puone::kernels::PUONE_ISA {
namespace softmaxing {

/// Number of interleaved rows that are processed together, if a row's elements are not contiguous.
constexpr int64_t kStrip = 64;

template <class In, class Out>
struct Softmax {
  using T = RowType<In>;

  Softmax(Launch& launch, const puone_softmax_args& args)
      : math{args.logarithm != 0},
        size(args.size),
        inner(args.inner),
        in(elementsAt<In>(launch, args.in)),
        result(elementsAt<In>(launch, args.result)),
        out(elementsAt<Out>(launch, args.out)) {}

  void row(const Block& block, int64_t index) const {
    const In* const x = in + index * size;
    Out* const y = out + index * size;
    const T top = block.reduce(
        size,
        math.kLowest,
        [=](int64_t i) { return cast<T>(x[i]); },
        [](T a, T b) { return a > b ? a : b; });
    const auto add = [](T a, T b) { return a + b; };
    if constexpr (std::is_same_v<Out, T>) {
      // Store the exponentials in the output, so that each is computed once.
      if (!math.logarithm) {
        block.each(size, [=](int64_t i) { y[i] = exponentialOrNan(cast<T>(x[i]) - top); });
        const T scale =
            math.normaliser(block.reduce(size, T(0), [=](int64_t i) { return y[i]; }, add));
        block.each(size, [=](int64_t i) { y[i] *= scale; });
        return;
      }
    }
    const auto power = [=](int64_t i) { return exponentialOrNan(cast<T>(x[i]) - top); };
    const T factor = math.normaliser(block.reduce(size, T(0), power, add));
    if (math.logarithm) {
      block.each(size, [=](int64_t i) { y[i] = cast<Out>(cast<T>(x[i]) - top - factor); });
    } else {
      block.each(size, [=](int64_t i) { y[i] = cast<Out>(power(i) * factor); });
    }
  }

  void strip(const Block& block, int64_t offset, int64_t n) const {
    T top[kStrip], sum[kStrip]; // element j belongs to one thread
    block.each(n, [&](int64_t j) {
      top[j] = math.kLowest;
      sum[j] = 0;
    });
    for (int64_t i = 0; i < size; ++i) {
      const In* const x = in + offset + i * inner;
      block.each(n, [&](int64_t j) {
        const T value = cast<T>(x[j]);
        top[j] = value > top[j] ? value : top[j];
      });
    }
    for (int64_t i = 0; i < size; ++i) {
      const In* const x = in + offset + i * inner;
      block.each(n, [&](int64_t j) { sum[j] += exponentialOrNan(cast<T>(x[j]) - top[j]); });
    }
    block.each(n, [&](int64_t j) { sum[j] = math.normaliser(sum[j]); });
    for (int64_t i = 0; i < size; ++i) {
      const In* const x = in + offset + i * inner;
      Out* const y = out + offset + i * inner;
      if (math.logarithm) {
        block.each(n, [&](int64_t j) { y[j] = cast<Out>(cast<T>(x[j]) - top[j] - sum[j]); });
      } else {
        block.each(n, [&](int64_t j) {
          y[j] = cast<Out>(exponentialOrNan(cast<T>(x[j]) - top[j]) * sum[j]);
        });
      }
    }
  }

  SoftmaxMath<T> math;
  int64_t size, inner;
  In *in, *result; // backward: the gradient and the result of the forward pass
  Out* out;
};

template <class In, class Out>
struct SoftmaxBackward : Softmax<In, Out> {
  using Base = Softmax<In, Out>;
  using T = typename Base::T;
  using Base::Base, Base::in, Base::inner, Base::math, Base::out, Base::result, Base::size;

  void row(const Block& block, int64_t index) const {
    const In *const grad = in + index * size, *const y = result + index * size;
    Out* const to = out + index * size;
    const T sum = block.reduce(
        size,
        T(0),
        [=, this](int64_t i) { return math.term(cast<T>(grad[i]), cast<T>(y[i])); },
        [](T a, T b) { return a + b; });
    block.each(size, [=, this](int64_t i) {
      to[i] = cast<Out>(math.gradient(cast<T>(grad[i]), cast<T>(y[i]), sum));
    });
  }

  void strip(const Block& block, int64_t offset, int64_t n) const {
    T sum[kStrip]; // element j belongs to one thread
    block.each(n, [&](int64_t j) { sum[j] = 0; });
    for (int64_t i = 0; i < size; ++i) {
      const In *const grad = in + offset + i * inner, *const y = result + offset + i * inner;
      block.each(n, [&](int64_t j) { sum[j] += math.term(cast<T>(grad[j]), cast<T>(y[j])); });
    }
    for (int64_t i = 0; i < size; ++i) {
      const In *const grad = in + offset + i * inner, *const y = result + offset + i * inner;
      Out* const to = out + offset + i * inner;
      block.each(n, [&](int64_t j) {
        to[j] = cast<Out>(math.gradient(cast<T>(grad[j]), cast<T>(y[j]), sum[j]));
      });
    }
  }
};

/// Processes all rows: one by one if they are dense, else in strips.
template <class Op>
void forAllRows(Launch& launch, const puone_softmax_args& args) {
  const Op op(launch, args);
  const int64_t size = args.size, inner = args.inner;
  if (inner == 1) {
    return blocks(
        launch, args.outer, size, [=](const Block& block, int64_t index) { op.row(block, index); });
  }
  const int64_t strips = (inner + kStrip - 1) / kStrip;
  blocks(launch, args.outer * strips, size * kStrip, [=](const Block& block, int64_t index) {
    const int64_t first = index % strips * kStrip;
    const int64_t n = inner - first < kStrip ? inner - first : kStrip;
    op.strip(block, index / strips * inner * size + first, n);
  });
}

/// Calls body.template operator()<In, Out>() for the pairs of types that occur.
template <class Body>
void withTypes(const puone_softmax_args& args, const Body& body) {
  const auto is = [&](int32_t in, int32_t out) {
    return args.in_dtype == in && args.out_dtype == out;
  };
  if (is(PUONE_FLOAT32, PUONE_FLOAT32)) return body.template operator()<float, float>();
  if (is(PUONE_FLOAT64, PUONE_FLOAT64)) return body.template operator()<double, double>();
  if (is(PUONE_FLOAT16, PUONE_FLOAT16)) return body.template operator()<Half, Half>();
  if (is(PUONE_BFLOAT16, PUONE_BFLOAT16)) return body.template operator()<BFloat16, BFloat16>();
  if (is(PUONE_FLOAT16, PUONE_FLOAT32)) return body.template operator()<Half, float>();
  if (is(PUONE_BFLOAT16, PUONE_FLOAT32)) return body.template operator()<BFloat16, float>();
  if (is(PUONE_FLOAT32, PUONE_FLOAT16)) return body.template operator()<float, Half>();
  if (is(PUONE_FLOAT32, PUONE_BFLOAT16)) return body.template operator()<float, BFloat16>();
  throw std::invalid_argument("softmax does not compute in these dtypes");
}

} // namespace softmaxing

inline void softmaxForward(Launch& launch, const puone_softmax_args& args) {
  softmaxing::withTypes(args, [&]<class In, class Out>() {
    softmaxing::forAllRows<softmaxing::Softmax<In, Out>>(launch, args);
  });
}

inline void softmaxBackward(Launch& launch, const puone_softmax_args& args) {
  softmaxing::withTypes(args, [&]<class In, class Out>() {
    softmaxing::forAllRows<softmaxing::SoftmaxBackward<In, Out>>(launch, args);
  });
}

} // namespace puone::kernels::PUONE_ISA
