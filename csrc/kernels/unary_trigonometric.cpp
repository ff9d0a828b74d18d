// SPDX-License-Identifier: BSD-3-Clause
// Trigonometric and hyperbolic functions of elements, and their inverses.
#include "kernels/families/unary_trigonometric.h"
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

/// Large angles need the standard library (math.h).
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

} // namespace

PUONE_KERNEL(sin) = elementwiseKernel<Sin, Inexact>;
PUONE_KERNEL(cos) = elementwiseKernel<Cos, Inexact>;
PUONE_KERNEL(tan) = elementwiseKernel<Tan, Inexact>;
PUONE_KERNEL(asin) = elementwiseKernel<Asin, Inexact>;
PUONE_KERNEL(acos) = elementwiseKernel<Acos, Inexact>;
PUONE_KERNEL(atan) = elementwiseKernel<Atan, Inexact>;
PUONE_KERNEL(sinh) = elementwiseKernel<Sinh, Inexact>;
PUONE_KERNEL(cosh) = elementwiseKernel<Cosh, Inexact>;
PUONE_KERNEL(tanh) = elementwiseKernel<Tanh, Inexact>;
PUONE_KERNEL(asinh) = elementwiseKernel<Asinh, Inexact>;
PUONE_KERNEL(acosh) = elementwiseKernel<Acosh, Inexact>;
PUONE_KERNEL(atanh) = elementwiseKernel<Atanh, Inexact>;
PUONE_KERNEL(sinc) = elementwiseKernel<Sinc, Inexact>;

} // namespace puone::kernels::PUONE_ISA
