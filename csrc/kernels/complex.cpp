// SPDX-License-Identifier: BSD-3-Clause
// "complex" and "polar": complex numbers of two real ones.
#include <cmath>

#include "kernels/elementwise.h"
#include "kernels/families.h"

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

constexpr Kernel kKernels[] = {
    elementwiseEntry<Cartesian, Reals>("complex"),
    elementwiseEntry<Polar, Reals>("polar"),
};

} // namespace

std::span<const Kernel> complexKernels() {
  return kKernels;
}

} // namespace puone::kernels::PUONE_ISA
