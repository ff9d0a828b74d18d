// SPDX-License-Identifier: BSD-3-Clause
// The optimizers' operators on lists of tensors: elementwise functors over all of them at once.
#include "kernels/families/foreach.h"
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

} // namespace

PUONE_KERNEL(foreach_sqrt) = foreachTensor<Sqrt>;
PUONE_KERNEL(foreach_exp) = foreachTensor<Exp>;
PUONE_KERNEL(foreach_abs) = foreachTensor<Abs>;
PUONE_KERNEL(foreach_neg) = foreachTensor<Neg>;
PUONE_KERNEL(foreach_reciprocal) = foreachTensor<Reciprocal>;
PUONE_KERNEL(foreach_add) = foreachTensor<Add>;
PUONE_KERNEL(foreach_sub) = foreachTensor<Sub>;
PUONE_KERNEL(foreach_mul) = foreachTensor<Mul>;
PUONE_KERNEL(foreach_div) = foreachTensor<Div>;
PUONE_KERNEL(foreach_pow) = foreachTensor<Pow>;
PUONE_KERNEL(foreach_maximum) = foreachTensor<Maximum>;
PUONE_KERNEL(foreach_minimum) = foreachTensor<Minimum>;
PUONE_KERNEL(foreach_addcmul) = foreachTensor<Addcmul>;
PUONE_KERNEL(foreach_addcdiv) = foreachTensor<Addcdiv>;
PUONE_KERNEL(foreach_lerp) = foreachTensor<Lerp>;

} // namespace puone::kernels::PUONE_ISA
