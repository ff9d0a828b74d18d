// SPDX-License-Identifier: BSD-3-Clause
// Activation functions and their gradients.
#include "kernels/families/activation.h"
#include "kernels/functors.h"

namespace puone::kernels::PUONE_ISA {
namespace {

template <class T>
PUONE_FN T standardNormalDistribution(T x) {
  return T(0.5) * (1 + erf(x * static_cast<T>(0.70710678118654752440)));
}
template <class T>
PUONE_FN T standardNormalDensity(T x) {
  return exp(T(-0.5) * x * x) * static_cast<T>(0.39894228040143267794);
}

/// The argument of gelu's tanh, and that argument's derivative.
template <class T>
inline constexpr T kGeluScale = static_cast<T>(0.79788456080286535588); // sqrt(2 / pi)
template <class T>
inline constexpr T kGeluCubic = static_cast<T>(0.044715);
template <class T>
PUONE_FN T geluInner(T x) {
  return kGeluScale<T> * (x + kGeluCubic<T> * x * x * x);
}
template <class T>
PUONE_FN T geluInnerSlope(T x) {
  return kGeluScale<T> * (1 + 3 * kGeluCubic<T> * x * x);
}

template <class T>
PUONE_FN T geluTanhSlope(T x) {
  const T t = tanh(geluInner(x));
  return T(0.5) * (1 + t) + T(0.5) * x * (1 - t * t) * geluInnerSlope(x);
}

template <class T>
PUONE_FN T siluSlope(T x) {
  const T s = sigmoid(x), one = number<T>(1);
  return s * (one + x * (one - s));
}

/// tanh(log(1 + e^x))
template <class T>
PUONE_FN T mishGate(T x) {
  const T e = exp(x > 20 ? T(20) : x);
  const T n = e * (e + 2);
  return x > 20 ? T(1) : n / (n + 2);
}
template <class T>
PUONE_FN T mishSlope(T x) {
  const T gate = mishGate(x);
  return gate + x * sigmoid(x) * (1 - gate * gate);
}

template <class T>
PUONE_FN T hardGate(T x) {
  const T raised = x + 3 < 0 ? T(0) : x + 3;
  return raised > 6 ? T(6) : raised;
}

/// log(1 / (1 + e^-x)); the second term is NaN where x is
template <class T>
PUONE_FN T logSigmoid(T x) {
  return (x < 0 ? x : T(0)) - log1p(exp(-abs(x)));
}
template <class T>
PUONE_FN T logSigmoidSlope(T x) {
  const T z = exp(-abs(x));
  return x < 0 ? 1 - z / (1 + z) : z / (1 + z);
}

PUONE_UNARY(Relu, x <= 0 ? T(0) : x);
PUONE_UNARY(Gelu, x* standardNormalDistribution(x));
PUONE_UNARY(GeluTanh, T(0.5) * x * (1 + tanh(geluInner(x))));
PUONE_UNARY(Silu, x* sigmoid(x));
PUONE_UNARY(Mish, x* mishGate(x));
PUONE_UNARY(Hardswish, x* hardGate(x) / 6);
PUONE_UNARY(Hardsigmoid, hardGate(x) / 6);
PUONE_UNARY(LogSigmoid, logSigmoid(x));

/// Gradients: of the result, then the argument of the forward function.
PUONE_BINARY(GeluBackward, a*(standardNormalDistribution(b) + b * standardNormalDensity(b)));
PUONE_BINARY(GeluTanhBackward, a* geluTanhSlope(b));
PUONE_BINARY(SiluBackward, a* conjugated(siluSlope(b)));
PUONE_BINARY(MishBackward, a* mishSlope(b));
PUONE_BINARY(HardswishBackward, b <= -3 ? T(0) : b < 3 ? a * (b / 3 + T(0.5)) : a);
PUONE_BINARY(HardsigmoidBackward, b > -3 && b < 3 ? a / 6 : T(0));
PUONE_BINARY(LogSigmoidBackward, a* logSigmoidSlope(b));
/// Of the result, then the result.
PUONE_BINARY(SigmoidBackward, a* conjugated((number<T>(1) - b) * b));
PUONE_BINARY(TanhBackward, a* conjugated(number<T>(1) - b * b));

PUONE_BINARY(Glu, a* sigmoid(b));
PUONE_BINARY(Prelu, a > 0 ? a : b * a);

template <class T>
struct PreluBackward {
  PUONE_FN Pair<T, T> operator()(T gradient, T x, T weight) const {
    return {x > 0 ? gradient : weight * gradient, x > 0 ? T(0) : x * gradient};
  }
};

template <class T>
struct GluBackward {
  PUONE_FN Pair<T, T> operator()(T gradient, T x, T gate) const {
    const T s = sigmoid(gate);
    return {s * gradient, (1 - s) * s * gradient * x};
  }
};

/// Functors with one or more scalars.
template <class T>
struct Scalars {
  explicit Scalars(const Parameters& p) : s0(p.get<T>(0)), s1(p.get<T>(1)) {}
  T s0, s1;
};

template <class T>
struct Threshold : Scalars<T> {
  using Scalars<T>::Scalars;
  PUONE_FN T operator()(T x) const {
    return x <= this->s0 ? this->s1 : x;
  }
};
/// PyTorch passes the operands of this gradient and the next one in this order.
template <class T>
struct ThresholdBackward : Scalars<T> {
  using Scalars<T>::Scalars;
  PUONE_FN T operator()(T x, T gradient) const {
    return x <= this->s0 ? T(0) : gradient;
  }
};

template <class T>
struct LeakyRelu : Scalars<T> {
  using Scalars<T>::Scalars;
  PUONE_FN T operator()(T x) const {
    return x > 0 ? x : x * this->s0;
  }
};
template <class T>
struct LeakyReluBackward : Scalars<T> {
  using Scalars<T>::Scalars;
  PUONE_FN T operator()(T x, T gradient) const {
    return x > 0 ? gradient : gradient * this->s0;
  }
};

/// Parameters of both: alpha, scale, input_scale; of the gradient also whether x is the result.
template <class T>
struct Elu {
  explicit Elu(const Parameters& p)
      : negative(p.get<T>(0) * p.get<T>(1)), scale(p.get<T>(1)), input_scale(p.get<T>(2)) {}
  PUONE_FN T operator()(T x) const {
    return x <= 0 ? expm1(x * input_scale) * negative : x * scale;
  }
  T negative, scale, input_scale;
};
template <class T>
struct EluBackward : Elu<T> {
  explicit EluBackward(const Parameters& p) : Elu<T>(p), of_result(p.get<T>(3) != 0) {}
  PUONE_FN T operator()(T gradient, T x) const {
    const T slope = of_result ? x + this->negative : this->negative * exp(x * this->input_scale);
    return gradient * (x <= 0 ? this->input_scale * slope : this->scale);
  }
  bool of_result;
};

template <class T>
struct HardtanhBackward : Scalars<T> {
  using Scalars<T>::Scalars;
  PUONE_FN T operator()(T gradient, T x) const {
    return x <= this->s0 || x >= this->s1 ? T(0) : gradient;
  }
};

/// Parameters: beta, threshold.
template <class T>
struct Softplus : Scalars<T> {
  using Scalars<T>::Scalars;
  PUONE_FN T operator()(T x) const {
    const T scaled = x * this->s0;
    return scaled > this->s1 ? x : log1p(exp(scaled)) / this->s0;
  }
};
template <class T>
struct SoftplusBackward : Scalars<T> {
  using Scalars<T>::Scalars;
  PUONE_FN T operator()(T gradient, T x) const {
    const T scaled = x * this->s0;
    return scaled > this->s1 ? gradient : gradient * sigmoid(scaled);
  }
};

template <class T>
struct Softshrink : Scalars<T> {
  using Scalars<T>::Scalars;
  PUONE_FN T operator()(T x) const {
    return x > this->s0 ? x - this->s0 : x < -this->s0 ? x + this->s0 : x * 0;
  }
};
template <class T>
struct Hardshrink : Scalars<T> {
  using Scalars<T>::Scalars;
  PUONE_FN T operator()(T x) const {
    return x >= -this->s0 && x <= this->s0 ? T(0) : x;
  }
};
template <class T>
struct ShrinkBackward : Scalars<T> {
  using Scalars<T>::Scalars;
  PUONE_FN T operator()(T gradient, T x) const {
    return x >= -this->s0 && x <= this->s0 ? T(0) : gradient;
  }
};

/// log(x / (1 - x)), with x clamped to the parameters low and high unless low is negative.
template <class T>
struct Logit : Scalars<T> {
  using Scalars<T>::Scalars;
  PUONE_FN T operator()(T x) const {
    const T low = this->s0, high = this->s1;
    const T bounded = x < low ? low : x > high ? high : x;
    const T inside = low < 0 ? x : bounded;
    return log(inside / (1 - inside));
  }
};
template <class T>
struct LogitBackward : Scalars<T> {
  using Scalars<T>::Scalars;
  PUONE_FN T operator()(T gradient, T x) const {
    const bool bounded = this->s0 >= 0;
    const T low = bounded ? this->s0 : T(0), high = bounded ? this->s1 : T(1);
    const T outside = bounded ? T(0) : kNaN<T>;
    return x < low || x > high ? outside : gradient / (x * (1 - x));
  }
};

} // namespace

PUONE_KERNEL(relu) = elementwiseKernel<Relu, Ordered>;
PUONE_KERNEL(threshold) = elementwiseKernel<Threshold, Ordered>;
PUONE_KERNEL(threshold_backward) = elementwiseKernel<ThresholdBackward, Ordered>;
PUONE_KERNEL(leaky_relu) = elementwiseKernel<LeakyRelu, Reals>;
PUONE_KERNEL(leaky_relu_backward) = elementwiseKernel<LeakyReluBackward, Reals>;
PUONE_KERNEL(elu) = elementwiseKernel<Elu, Reals>;
PUONE_KERNEL(elu_backward) = elementwiseKernel<EluBackward, Reals>;
PUONE_KERNEL(gelu) = elementwiseKernel<Gelu, Reals>;
PUONE_KERNEL(gelu_backward) = elementwiseKernel<GeluBackward, Reals>;
PUONE_KERNEL(gelu_tanh) = elementwiseKernel<GeluTanh, Reals>;
PUONE_KERNEL(gelu_tanh_backward) = elementwiseKernel<GeluTanhBackward, Reals>;
PUONE_KERNEL(silu) = elementwiseKernel<Silu, Inexact>;
PUONE_KERNEL(silu_backward) = elementwiseKernel<SiluBackward, Inexact>;
PUONE_KERNEL(mish) = elementwiseKernel<Mish, Reals>;
PUONE_KERNEL(mish_backward) = elementwiseKernel<MishBackward, Reals>;
PUONE_KERNEL(hardswish) = elementwiseKernel<Hardswish, Reals>;
PUONE_KERNEL(hardswish_backward) = elementwiseKernel<HardswishBackward, Reals>;
PUONE_KERNEL(hardsigmoid) = elementwiseKernel<Hardsigmoid, Reals>;
PUONE_KERNEL(hardsigmoid_backward) = elementwiseKernel<HardsigmoidBackward, Reals>;
PUONE_KERNEL(hardtanh_backward) = elementwiseKernel<HardtanhBackward, Reals>;
PUONE_KERNEL(softplus) = elementwiseKernel<Softplus, Reals>;
PUONE_KERNEL(softplus_backward) = elementwiseKernel<SoftplusBackward, Reals>;
PUONE_KERNEL(softshrink) = elementwiseKernel<Softshrink, Reals>;
PUONE_KERNEL(hardshrink) = elementwiseKernel<Hardshrink, Reals>;
PUONE_KERNEL(shrink_backward) = elementwiseKernel<ShrinkBackward, Reals>;
PUONE_KERNEL(log_sigmoid) = elementwiseKernel<LogSigmoid, Reals>;
PUONE_KERNEL(log_sigmoid_backward) = elementwiseKernel<LogSigmoidBackward, Reals>;
PUONE_KERNEL(sigmoid_backward) = elementwiseKernel<SigmoidBackward, Inexact>;
PUONE_KERNEL(tanh_backward) = elementwiseKernel<TanhBackward, Inexact>;
PUONE_KERNEL(logit) = elementwiseKernel<Logit, Reals>;
PUONE_KERNEL(logit_backward) = elementwiseKernel<LogitBackward, Reals>;
PUONE_KERNEL(glu) = elementwiseKernel<Glu, Reals>;
PUONE_KERNEL(glu_backward) = elementwiseKernel<GluBackward, Reals>;
PUONE_KERNEL(prelu) = elementwiseKernel<Prelu, Reals>;
PUONE_KERNEL(prelu_backward) = elementwiseKernel<PreluBackward, Reals>;

} // namespace puone::kernels::PUONE_ISA
