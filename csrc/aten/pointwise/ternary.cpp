// SPDX-License-Identifier: BSD-3-Clause
// where, clamp, lerp, addcmul, addcdiv.
#include <ATen/core/Tensor.h>
#include <ATen/ops/result_type.h>
#include <torch/library.h>

#include <cmath>
#include <limits>

#include "aten/core/elementwise.h"
#include "aten/core/launch.h"
#include "aten/pointwise/ternary_ops.h"

namespace puone {
namespace {

using at::Tensor;
using c10::Scalar;

// What bounds nothing in the type that stands for `type` in kernels.
Scalar unbounded(c10::ScalarType type, bool above) {
  if (c10::isFloatingType(type)) {
    const double infinity = std::numeric_limits<double>::infinity();
    return above ? infinity : -infinity;
  }
  using Short = std::numeric_limits<int32_t>;
  using Long = std::numeric_limits<int64_t>;
  const bool wide = c10::elementSize(type) > 4 || type == c10::ScalarType::UInt32;
  if (above) return static_cast<int64_t>(wide ? Long::max() : Short::max());
  return static_cast<int64_t>(wide ? Long::min() : Short::min());
}

// Beyond what `type` has, a bound bounds nothing, or is one that no element can keep. (Before 2.15
// the CPU wraps or refuses all of these.) For 64 bits a double is exact enough.
void checkBounds(c10::ScalarType type, const Scalar* low, const Scalar* high) {
  if (!c10::isIntegralType(type, /*includeBool=*/false)) return;
  const bool hasSign = c10::isSignedType(type);
  const int bits = 8 * static_cast<int>(c10::elementSize(type)) - (hasSign ? 1 : 0);
  const double most = std::ldexp(1.0, bits) - 1, least = hasSign ? -most - 1 : 0;
  constexpr auto outside = " is outside the representable range of ";
  TORCH_CHECK(!low || low->toDouble() <= most, "Clamp min value ", low->toDouble(), outside, type);
  TORCH_CHECK(
      !high || high->toDouble() >= least, "Clamp max value ", high->toDouble(), outside, type);
}

void launchClamp(at::TensorIteratorBase& iter, const Scalar* low, const Scalar* high) {
  const c10::ScalarType type = iter.common_dtype();
  checkType("clamp", type, kOrdered);
  checkBounds(type, low, high);
  launchElementwise(
      kernel::clamp,
      iter,
      type,
      {low ? *low : unbounded(type, false), high ? *high : unbounded(type, true)});
}

struct Clamp : at::meta::structured_clamp {
  void impl(
      const Tensor& /*self*/,
      at::OptionalScalarRef min,
      at::OptionalScalarRef max,
      const Tensor& /*out*/) {
    launchClamp(*this, min ? &min.get() : nullptr, max ? &max.get() : nullptr);
  }
};

struct ClampMin : at::meta::structured_clamp_min {
  void impl(const Tensor& /*self*/, const Scalar& min, const Tensor& /*out*/) {
    launchClamp(*this, &min, nullptr);
  }
};

struct ClampMax : at::meta::structured_clamp_max {
  void impl(const Tensor& /*self*/, const Scalar& max, const Tensor& /*out*/) {
    launchClamp(*this, nullptr, &max);
  }
};

struct ClampTensor : at::meta::structured_clamp_Tensor {
  void impl(
      const Tensor& /*self*/,
      at::OptionalTensorRef min,
      at::OptionalTensorRef max,
      const Tensor& /*out*/) {
    checkType("clamp", common_dtype(), kOrdered);
    const ElementwiseKernel& kernel = min.has_value() && max.has_value() ? kernel::clamp_tensor
                                      : min.has_value()                  ? kernel::maximum
                                                                         : kernel::minimum;
    launchElementwise(kernel, *this, common_dtype());
  }
};

struct LerpScalar : at::meta::structured_lerp_Scalar {
  void impl(
      const Tensor& /*self*/, const Tensor& /*end*/, const Scalar& weight, const Tensor& /*out*/) {
    checkType("lerp", common_dtype(), kInexact);
    launchElementwise(kernel::lerp_scalar, *this, common_dtype(), {weight});
  }
};

template <class Meta, const ElementwiseKernel& kKernel, uint32_t kTypes>
struct WithValue : Meta {
  void impl(
      const Tensor& /*self*/,
      const Tensor& /*tensor1*/,
      const Tensor& /*tensor2*/,
      const Scalar& value,
      const Tensor& /*out*/) {
    checkType(kKernel.name(), this->common_dtype(), kTypes);
    launchElementwise(kKernel, *this, this->common_dtype(), {value});
  }
};

} // namespace
} // namespace puone

#include "aten/pointwise/ternary_registrations.inc"
