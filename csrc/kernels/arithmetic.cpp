// SPDX-License-Identifier: BSD-3-Clause
// Sums, differences, products and quotients of elements.
#include "kernels/arithmetic.h"

#include "kernels/elementwise.h"
#include "kernels/families.h"

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

constexpr Kernel kKernels[] = {
    elementwiseEntry<Add, Numbers>("add"),
    elementwiseEntry<Sub, Numbers>("sub"),
    elementwiseEntry<Mul, Numbers>("mul"),
    elementwiseEntry<Div, Inexact>("div"),
};

} // namespace

std::span<const Kernel> arithmeticKernels() {
  return kKernels;
}

} // namespace puone::kernels::PUONE_ISA
