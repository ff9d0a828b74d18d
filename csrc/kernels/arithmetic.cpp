// SPDX-License-Identifier: BSD-3-Clause
// Sums, differences, products and quotients of elements.
#include "kernels/arithmetic.h"

#include "kernels/elementwise.h"
#include "kernels/families/arithmetic.h"

namespace puone::kernels::PUONE_ISA {
namespace {

template <class T>
struct Add {
  explicit Add(const Parameters& p) : alpha(p.get<T>(0)) {}
  PUONE_FN T operator()(T a, T b) const {
    return plus(a, times(alpha, b));
  }
  T alpha;
};

template <class T>
struct Sub {
  explicit Sub(const Parameters& p) : alpha(p.get<T>(0)) {}
  PUONE_FN T operator()(T a, T b) const {
    return minus(a, times(alpha, b));
  }
  T alpha;
};

template <class T>
struct Mul {
  PUONE_FN T operator()(T a, T b) const {
    return times(a, b);
  }
};

template <class T>
struct Div {
  PUONE_FN T operator()(T a, T b) const {
    return over(a, b);
  }
};

} // namespace

PUONE_KERNEL(add) = elementwiseKernel<Add, Numbers>;
PUONE_KERNEL(sub) = elementwiseKernel<Sub, Numbers>;
PUONE_KERNEL(mul) = elementwiseKernel<Mul, Numbers>;
PUONE_KERNEL(div) = elementwiseKernel<Div, Inexact>;

} // namespace puone::kernels::PUONE_ISA
