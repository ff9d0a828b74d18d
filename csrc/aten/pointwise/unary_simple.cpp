// SPDX-License-Identifier: BSD-3-Clause
// Signs, magnitudes, rounding and tests.
#include <ATen/core/Tensor.h>
#include <ATen/ops/ne_meta.h>
#include <ATen/ops/ne_ops.h>
#include <torch/library.h>

#include <cmath>

#include "aten/core/element.h"
#include "aten/core/elementwise.h"
#include "aten/core/factory.h"
#include "aten/core/launch.h"
#include "aten/pointwise/unary_simple_ops.h"

namespace puone {
namespace {

using at::Tensor;

// Integers are whole already.
template <class Meta, const ElementwiseKernel& kKernel>
struct Rounding : Meta {
  void impl(const Tensor& self, const Tensor& out) {
    if (c10::isIntegralType(self.scalar_type(), /*includeBool=*/false)) {
      if (!out.is_same(self)) out.copy_(self);
      return;
    }
    checkType(kKernel.name(), self.scalar_type(), kRealTypes);
    launchElementwise(kKernel, *this, self.scalar_type());
  }
};

struct RoundDecimals : at::meta::structured_round_decimals {
  void impl(const Tensor& self, int64_t decimals, const Tensor& out) {
    if (c10::isIntegralType(self.scalar_type(), /*includeBool=*/false)) {
      if (!out.is_same(self)) out.copy_(self);
      return;
    }
    checkType("round", self.scalar_type(), kRealTypes);
    if (decimals == 0) return launchElementwise(kernel::round, *this, self.scalar_type());
    const double power = std::pow(10.0, std::abs(static_cast<double>(decimals)));
    launchElementwise(kernel::round_decimals, *this, self.scalar_type(), {power, decimals < 0});
  }
};

// Tests of one operand, which the meta leaves in its own type. Of integers none is infinite.
template <class Meta, const ElementwiseKernel& kKernel, bool kIntegers = false>
struct Predicate : Meta {
  void impl(const Tensor& self, const Tensor& out) {
    const bool integral = c10::isIntegralType(self.scalar_type(), /*includeBool=*/true);
    if (integral && !kIntegers) {
      out.zero_();
      return;
    }
    launchElementwise(kKernel, *this, self.scalar_type());
  }
};

struct BitwiseNot : at::meta::structured_bitwise_not {
  void impl(const Tensor& self, const Tensor& /*out*/) {
    checkType("bitwise_not", self.scalar_type(), kIntegers);
    const bool logical = self.scalar_type() == c10::ScalarType::Bool;
    launchElementwise(
        logical ? kernel::logical_not : kernel::bitwise_not, *this, self.scalar_type());
  }
};

// An operator whose kernel makes of each element of `self` one that `out` can hold.
at::TensorIterator unaryOf(const Tensor& out, const Tensor& self) {
  return at::TensorIteratorConfig()
      .check_all_same_dtype(false)
      .add_output(out)
      .add_const_input(self)
      .build();
}

// Complex numbers have real magnitudes and angles.
c10::ScalarType checkRealOut(const Tensor& self, const Tensor& out, c10::ScalarType result) {
  checkCanHold(out, result);
  return self.is_complex() ? self.scalar_type() : result;
}

Tensor& absOut(const Tensor& self, Tensor& out) {
  if (!isComputable(self.scalar_type())) return fallBack<at::_ops::abs_out>(self, out);
  checkType("abs", self.scalar_type(), kIntegerTypes | kInexact);
  const auto type = checkRealOut(self, out, c10::toRealValueType(self.scalar_type()));
  if (!self.is_complex()) {
    auto iter = at::TensorIterator::unary_op(out, self);
    launchElementwise(kernel::abs, iter, type);
  } else {
    auto iter = unaryOf(out, self);
    launchElementwise(kernel::abs, iter, type);
  }
  return out;
}

c10::ScalarType angleType(const Tensor& self) {
  if (c10::isIntegralType(self.scalar_type(), /*includeBool=*/true)) {
    return c10::typeMetaToScalarType(c10::get_default_dtype());
  }
  return c10::toRealValueType(self.scalar_type());
}

Tensor& angleOut(const Tensor& self, Tensor& out) {
  if (!isComputable(self.scalar_type())) return fallBack<at::_ops::angle_out>(self, out);
  const auto type = checkRealOut(self, out, angleType(self));
  auto iter = unaryOf(out, self);
  launchElementwise(kernel::angle, iter, type);
  return out;
}

Tensor angle(const Tensor& self) {
  Tensor out = newResult({0}, {}, self.options().dtype(angleType(self)));
  return angleOut(self, out);
}

Tensor& conjPhysicalOut(const Tensor& self, Tensor& out) {
  if (!isComputable(self.scalar_type())) return fallBack<at::_ops::conj_physical_out>(self, out);
  auto iter = at::TensorIterator::unary_op(out, self);
  if (self.is_complex()) {
    launchElementwise(kernel::conj, iter, self.scalar_type());
  } else if (!out.is_same(self)) {
    out.copy_(self);
  }
  return out;
}

// Not left to torch: its own form asks for a kernel of a DispatchStub.
Tensor& conjPhysicalInplace(Tensor& self) {
  return conjPhysicalOut(self, self);
}

Tensor& logicalNotOut(const Tensor& self, Tensor& out) {
  if (!isComputable(self.scalar_type()) || !isComputable(out.scalar_type())) {
    return fallBack<at::_ops::logical_not_out>(self, out);
  }
  auto iter = unaryOf(out, self);
  launchElementwise(kernel::logical_not, iter, self.scalar_type());
  return out;
}

Tensor& nanToNumOut(
    const Tensor& self,
    std::optional<double> nan,
    std::optional<double> infinity,
    std::optional<double> minus_infinity,
    Tensor& out) {
  TORCH_CHECK(
      self.scalar_type() == out.scalar_type(),
      "nan_to_num: dtype of out: ",
      out.scalar_type(),
      " should be same as input: ",
      self.scalar_type());
  if (!isComputable(self.scalar_type())) {
    return fallBack<at::_ops::nan_to_num_out>(self, nan, infinity, minus_infinity, out);
  }
  auto iter = at::TensorIterator::unary_op(out, self);
  if (c10::isIntegralType(self.scalar_type(), /*includeBool=*/true)) {
    if (!out.is_same(self)) out.copy_(self);
    return out;
  }
  const double top = largestFinite(self.scalar_type());
  launchElementwise(
      kernel::nan_to_num,
      iter,
      self.scalar_type(),
      {nan.value_or(0), infinity.value_or(top), minus_infinity.value_or(-top)});
  return out;
}

Tensor isnan(const Tensor& self) {
  return at::_ops::ne_Tensor::call(self, self);
}

} // namespace
} // namespace puone

#include "aten/pointwise/unary_simple_registrations.inc"
