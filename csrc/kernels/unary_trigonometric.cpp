// SPDX-License-Identifier: BSD-3-Clause
// Trigonometric and hyperbolic functions of elements, and their inverses.
#include "kernels/families.h"
#include "kernels/functors.h"

namespace puone::kernels::PUONE_ISA {
namespace {

PUONE_UNARY(SinOf, sin(x));
PUONE_UNARY(CosOf, cos(x));
PUONE_UNARY(TanOf, tan(x));
PUONE_UNARY(Asin, asin(x));
PUONE_UNARY(Acos, acos(x));
PUONE_UNARY(Atan, atan(x));
PUONE_UNARY(Sinh, sinh(x));
PUONE_UNARY(Cosh, cosh(x));
PUONE_UNARY(Tanh, tanh(x));
PUONE_UNARY(Asinh, asinh(x));
PUONE_UNARY(Acosh, acosh(x));
PUONE_UNARY(Atanh, atanh(x));

/// sin(pi x) / (pi x)
template <class T>
struct SincOf {
  PUONE_FN T operator()(T x) const {
    const T angle = number<T>(kPi<double>) * x;
    return x == number<T>(0) ? number<T>(1) : sin(angle) / angle;
  }
};

/// Some angles of floats math.h leaves to the standard library.
template <class T>
struct Sin : SinOf<T> {};
template <>
struct Sin<float> : SinOf<float> {
  PUONE_FN bool rare(float x) const {
    return isFarAngle(x);
  }
  PUONE_FN float slow(float x) const {
    return std::sin(x);
  }
};

template <class T>
struct Cos : CosOf<T> {};
template <>
struct Cos<float> : CosOf<float> {
  PUONE_FN bool rare(float x) const {
    return isFarAngle(x);
  }
  PUONE_FN float slow(float x) const {
    return std::cos(x);
  }
};

template <class T>
struct Tan : TanOf<T> {};
template <>
struct Tan<float> : TanOf<float> {
  PUONE_FN bool rare(float x) const {
    return isFarAngle(x);
  }
  PUONE_FN float slow(float x) const {
    return std::tan(x);
  }
};

template <class T>
struct Sinc : SincOf<T> {};
template <>
struct Sinc<float> : SincOf<float> {
  PUONE_FN bool rare(float x) const {
    return isFarAngle(kPi<float> * x);
  }
  PUONE_FN float slow(float x) const {
    return std::sin(kPi<float> * x) / (kPi<float> * x);
  }
};

constexpr Kernel kKernels[] = {
    elementwiseEntry<Sin, Inexact>("sin"),
    elementwiseEntry<Cos, Inexact>("cos"),
    elementwiseEntry<Tan, Inexact>("tan"),
    elementwiseEntry<Asin, Inexact>("asin"),
    elementwiseEntry<Acos, Inexact>("acos"),
    elementwiseEntry<Atan, Inexact>("atan"),
    elementwiseEntry<Sinh, Inexact>("sinh"),
    elementwiseEntry<Cosh, Inexact>("cosh"),
    elementwiseEntry<Tanh, Inexact>("tanh"),
    elementwiseEntry<Asinh, Inexact>("asinh"),
    elementwiseEntry<Acosh, Inexact>("acosh"),
    elementwiseEntry<Atanh, Inexact>("atanh"),
    elementwiseEntry<Sinc, Inexact>("sinc"),
};

} // namespace

std::span<const Kernel> unaryTrigonometricKernels() {
  return kKernels;
}

} // namespace puone::kernels::PUONE_ISA
