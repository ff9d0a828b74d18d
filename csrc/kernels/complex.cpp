// SPDX-License-Identifier: BSD-3-Clause
// "complex" and "polar": complex numbers of two real ones.
#include <cmath>

#include "kernels/elementwise.h"
#include "kernels/families/complex.h"

namespace puone::kernels::PUONE_ISA {
namespace {

template <class T>
struct Cartesian {
  PUONE_FN Complex<T> operator()(T real, T imaginary) const {
    return {real, imaginary};
  }
};

template <class T>
struct Polar {
  PUONE_FN Complex<T> operator()(T magnitude, T angle) const {
    return {magnitude * std::cos(angle), magnitude * std::sin(angle)};
  }
};

} // namespace

PUONE_KERNEL(complex) = elementwiseKernel<Cartesian, Reals>;
PUONE_KERNEL(polar) = elementwiseKernel<Polar, Reals>;

} // namespace puone::kernels::PUONE_ISA
