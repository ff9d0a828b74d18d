// SPDX-License-Identifier: BSD-3-Clause
// softmax and log_softmax, forwards and backwards: a block per row.
#include <cmath>
#include <limits>
#include <stdexcept>

#include "kernels/args/normalization.h"
#include "kernels/blocks.h"
#include "kernels/cast.h"
#include "kernels/entry.h"
#include "kernels/families.h"
#include "kernels/row_math.h"

namespace puone::kernels::PUONE_ISA {
namespace {

/// How far elements of a row are apart: known to the compiler where it is 1.
struct Dense {
  PUONE_FN int64_t operator()(int64_t i) const {
    return i;
  }
};
struct Apart {
  int64_t stride;
  PUONE_FN int64_t operator()(int64_t i) const {
    return i * stride;
  }
};

template <class In, class Out, class At>
struct Forward {
  using T = RowType<In>;

  void operator()(const Block& block, const In* x, Out* y, int64_t n) const {
    const T top = block.reduce(
        n,
        -std::numeric_limits<T>::infinity(),
        [=, this](int64_t i) { return cast<T>(x[at(i)]); },
        [](T a, T b) { return a > b ? a : b; });
    const T sum = block.reduce(
        n,
        T(0),
        [=, this](int64_t i) { return exponentialOrNan(cast<T>(x[at(i)]) - top); },
        [](T a, T b) { return a + b; });
    if (logarithm) {
      // Not x - (top + log_sum): a large top would swallow the logarithm.
      const T log_sum = std::log(sum);
      block.each(
          n, [=, this](int64_t i) { y[at(i)] = cast<Out>(cast<T>(x[at(i)]) - top - log_sum); });
    } else {
      const T scale = T(1) / sum;
      block.each(n, [=, this](int64_t i) {
        y[at(i)] = cast<Out>(exponentialOrNan(cast<T>(x[at(i)]) - top) * scale);
      });
    }
  }

  bool logarithm;
  At at;
};

template <class In, class Out, class At>
struct Backward {
  using T = RowType<In>;

  void operator()(const Block& block, const In* grad, const In* y, Out* out, int64_t n) const {
    const auto add = [](T a, T b) { return a + b; };
    if (logarithm) {
      const T sum =
          block.reduce(n, T(0), [=, this](int64_t i) { return cast<T>(grad[at(i)]); }, add);
      block.each(n, [=, this](int64_t i) {
        out[at(i)] = cast<Out>(cast<T>(grad[at(i)]) - exponentialOrNan(cast<T>(y[at(i)])) * sum);
      });
    } else {
      const T sum = block.reduce(
          n, T(0), [=, this](int64_t i) { return cast<T>(grad[at(i)]) * cast<T>(y[at(i)]); }, add);
      block.each(n, [=, this](int64_t i) {
        out[at(i)] = cast<Out>((cast<T>(grad[at(i)]) - sum) * cast<T>(y[at(i)]));
      });
    }
  }

  bool logarithm;
  At at;
};

/// row(block, offset) for the first element of each row.
template <class Row>
void forSoftmaxRows(Launch& launch, const puone_softmax_args& args, const Row& row) {
  const int64_t inner = args.inner, size = args.size;
  blocks(launch, args.outer * inner, size, [=](const Block& block, int64_t index) {
    row(block, index / inner * inner * size + index % inner);
  });
}

template <class In, class Out, class At>
void forwardOf(Launch& launch, const puone_softmax_args& args, At at) {
  const Forward<In, Out, At> forward{args.logarithm != 0, at};
  const In* const in = reinterpret_cast<const In*>(launch.resolve(args.in));
  Out* const out = reinterpret_cast<Out*>(launch.resolve(args.out));
  const int64_t n = args.size;
  forSoftmaxRows(launch, args, [=](const Block& block, int64_t offset) {
    forward(block, in + offset, out + offset, n);
  });
}

template <class In, class Out, class At>
void backwardOf(Launch& launch, const puone_softmax_args& args, At at) {
  const Backward<In, Out, At> backward{args.logarithm != 0, at};
  const In* const grad = reinterpret_cast<const In*>(launch.resolve(args.in));
  const In* const result = reinterpret_cast<const In*>(launch.resolve(args.result));
  Out* const out = reinterpret_cast<Out*>(launch.resolve(args.out));
  const int64_t n = args.size;
  forSoftmaxRows(launch, args, [=](const Block& block, int64_t offset) {
    backward(block, grad + offset, result + offset, out + offset, n);
  });
}

/// body.template operator()<In, Out>() for the pairs of types that occur.
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

void softmax(Launch& launch, const puone_softmax_args& args) {
  withTypes(args, [&]<class In, class Out>() {
    if (args.inner == 1) return forwardOf<In, Out>(launch, args, Dense{});
    forwardOf<In, Out>(launch, args, Apart{args.inner});
  });
}

void softmaxBackward(Launch& launch, const puone_softmax_args& args) {
  withTypes(args, [&]<class In, class Out>() {
    if (args.inner == 1) return backwardOf<In, Out>(launch, args, Dense{});
    backwardOf<In, Out>(launch, args, Apart{args.inner});
  });
}

constexpr Kernel kKernels[] = {
    entry<puone_softmax_args, softmax>("softmax"),
    entry<puone_softmax_args, softmaxBackward>("softmax_backward"),
};

} // namespace

std::span<const Kernel> softmaxKernels() {
  return kKernels;
}

} // namespace puone::kernels::PUONE_ISA
