// SPDX-License-Identifier: BSD-3-Clause
// Losses per element and their gradients; other kernels compute sums and means over them.
#include "kernels/families/loss.h"
#include "kernels/functors.h"

namespace puone::kernels::PUONE_ISA {
namespace {

template <class T>
PUONE_FN T square(T x) {
  return x * x;
}

PUONE_BINARY(MseLoss, square(a - b));

/// One scalar: where the parabola ends.
template <class T>
struct SmoothL1Loss {
  explicit SmoothL1Loss(const Parameters& p) : beta(p.get<T>(0)) {}
  PUONE_FN T operator()(T x, T target) const {
    const T z = abs(x - target);
    return z < beta ? T(0.5) * z * z / beta : z - T(0.5) * beta;
  }
  T beta;
};
template <class T>
struct HuberLoss {
  explicit HuberLoss(const Parameters& p) : delta(p.get<T>(0)) {}
  PUONE_FN T operator()(T x, T target) const {
    const T z = abs(x - target);
    return z <= delta ? T(0.5) * z * z : delta * (z - T(0.5) * delta);
  }
  T delta;
};

/// Gradients. Parameters: the factor of the reduction, where the parabola ends.
template <class T>
struct MseLossBackward {
  explicit MseLossBackward(const Parameters& p) : factor(p.get<T>(0)) {}
  PUONE_FN T operator()(T x, T target, T gradient) const {
    return factor * (x - target) * gradient;
  }
  T factor;
};
template <class T>
struct SmoothL1LossBackward {
  explicit SmoothL1LossBackward(const Parameters& p) : factor(p.get<T>(0)), beta(p.get<T>(1)) {}
  PUONE_FN T operator()(T x, T target, T gradient) const {
    const T z = x - target;
    const T inner = z / beta;
    return factor * gradient * (z <= -beta ? T(-1) : z >= beta ? T(1) : inner);
  }
  T factor, beta;
};
template <class T>
struct HuberLossBackward {
  explicit HuberLossBackward(const Parameters& p) : factor(p.get<T>(0)), delta(p.get<T>(1)) {}
  PUONE_FN T operator()(T x, T target, T gradient) const {
    const T z = x - target;
    return factor * gradient * (z <= -delta ? -delta : z >= delta ? delta : z);
  }
  T factor, delta;
};

/// Logarithms are clamped to -100, so that a weight of 0 gives 0 instead of NaN.
template <class T>
PUONE_FN T atLeast(T x, T low) {
  return x < low ? low : x;
}
template <class T>
struct BinaryCrossEntropy {
  PUONE_FN T operator()(T x, T target, T weight) const {
    const T yes = atLeast(log(x), T(-100)), no = atLeast(log1p(-x), T(-100));
    return ((target - 1) * no - target * yes) * weight;
  }
};
template <class T>
struct BinaryCrossEntropyBackward {
  explicit BinaryCrossEntropyBackward(const Parameters& p) : factor(p.get<T>(0)) {}
  PUONE_FN T operator()(T x, T target, T gradient, T weight) const {
    return factor * weight * gradient * (x - target) / atLeast((1 - x) * x, T(1e-12));
  }
  T factor;
};

} // namespace

PUONE_KERNEL(mse_loss) = elementwiseKernel<MseLoss, Reals>;
PUONE_KERNEL(mse_loss_backward) = elementwiseKernel<MseLossBackward, Reals>;
PUONE_KERNEL(smooth_l1_loss) = elementwiseKernel<SmoothL1Loss, Reals>;
PUONE_KERNEL(smooth_l1_loss_backward) = elementwiseKernel<SmoothL1LossBackward, Reals>;
PUONE_KERNEL(huber_loss) = elementwiseKernel<HuberLoss, Reals>;
PUONE_KERNEL(huber_loss_backward) = elementwiseKernel<HuberLossBackward, Reals>;
PUONE_KERNEL(binary_cross_entropy) = elementwiseKernel<BinaryCrossEntropy, Reals>;
PUONE_KERNEL(binary_cross_entropy_backward) = elementwiseKernel<BinaryCrossEntropyBackward, Reals>;

} // namespace puone::kernels::PUONE_ISA
