// SPDX-License-Identifier: BSD-3-Clause
// The optimizers' operators on lists of tensors: elementwise functors over all of them at once.
#include "kernels/families.h"
#include "kernels/functors.h"

#ifdef PUONE_SIMT
#include "kernels/simt/foreach.h"
#else
#include "kernels/host/foreach.h"
#endif

namespace puone::kernels::PUONE_ISA {
namespace {

PUONE_UNARY(Sqrt, sqrt(x));
PUONE_UNARY(Exp, exp(x));
PUONE_UNARY(Abs, abs(x));
PUONE_UNARY(Neg, -x);
PUONE_UNARY(Reciprocal, 1 / x);
PUONE_BINARY(Mul, a* b);
PUONE_BINARY(Div, a / b);
PUONE_BINARY(Pow, pow(a, b));
PUONE_BINARY(Maximum, a > b || a != a ? a : b);
PUONE_BINARY(Minimum, a < b || a != a ? a : b);

/// The parameter is alpha.
template <class T>
struct Add {
  explicit Add(const Parameters& p) : alpha(p.get<T>(0)) {}
  PUONE_FN T operator()(T a, T b) const {
    return a + alpha * b;
  }
  T alpha;
};
template <class T>
struct Sub {
  explicit Sub(const Parameters& p) : alpha(p.get<T>(0)) {}
  PUONE_FN T operator()(T a, T b) const {
    return a - alpha * b;
  }
  T alpha;
};

template <class T>
struct Addcmul {
  PUONE_FN T operator()(T x, T a, T b, T value) const {
    return x + value * a * b;
  }
};
template <class T>
struct Addcdiv {
  PUONE_FN T operator()(T x, T a, T b, T value) const {
    return x + value * a / b;
  }
};
template <class T>
struct Lerp {
  PUONE_FN T operator()(T start, T end, T weight) const {
    const T difference = end - start;
    return abs(weight) < T(0.5) ? start + weight * difference : end - difference * (1 - weight);
  }
};

constexpr Kernel kKernels[] = {
    entry<puone_foreach_args, foreachTensor<Sqrt>>("foreach_sqrt"),
    entry<puone_foreach_args, foreachTensor<Exp>>("foreach_exp"),
    entry<puone_foreach_args, foreachTensor<Abs>>("foreach_abs"),
    entry<puone_foreach_args, foreachTensor<Neg>>("foreach_neg"),
    entry<puone_foreach_args, foreachTensor<Reciprocal>>("foreach_reciprocal"),
    entry<puone_foreach_args, foreachTensor<Add>>("foreach_add"),
    entry<puone_foreach_args, foreachTensor<Sub>>("foreach_sub"),
    entry<puone_foreach_args, foreachTensor<Mul>>("foreach_mul"),
    entry<puone_foreach_args, foreachTensor<Div>>("foreach_div"),
    entry<puone_foreach_args, foreachTensor<Pow>>("foreach_pow"),
    entry<puone_foreach_args, foreachTensor<Maximum>>("foreach_maximum"),
    entry<puone_foreach_args, foreachTensor<Minimum>>("foreach_minimum"),
    entry<puone_foreach_args, foreachTensor<Addcmul>>("foreach_addcmul"),
    entry<puone_foreach_args, foreachTensor<Addcdiv>>("foreach_addcdiv"),
    entry<puone_foreach_args, foreachTensor<Lerp>>("foreach_lerp"),
};

} // namespace

std::span<const Kernel> foreachKernels() {
  return kKernels;
}

} // namespace puone::kernels::PUONE_ISA
