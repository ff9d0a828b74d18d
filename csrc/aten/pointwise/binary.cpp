// SPDX-License-Identifier: BSD-3-Clause
// Functions of two tensors besides the arithmetic ones.
#include <ATen/ScalarOps.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/sub_meta.h>
#include <ATen/ops/sub_ops.h>
#include <torch/library.h>

#include "aten/core/elementwise.h"
#include "aten/core/launch.h"
#include "aten/pointwise/binary_ops.h"

namespace puone {
namespace {

using at::Tensor;

struct DivMode : at::meta::structured_div_Tensor_mode {
  void impl(
      const Tensor& /*self*/,
      const Tensor& /*other*/,
      std::optional<c10::string_view> mode,
      const Tensor& /*out*/) {
    const c10::ScalarType type = common_dtype();
    checkType("div", type, mode ? kOrdered : kInexact);
    launchElementwise(
        !mode              ? kernel::div
        : *mode == "trunc" ? kernel::div_trunc
                           : kernel::div_floor,
        *this,
        type);
  }
};

// Complex numbers are the CPU's.
template <class Meta, const ElementwiseKernel& kKernel>
struct RealsOnly : Elementwise<Meta, kKernel, kRealTypes> {
  static bool supports(const Tensor& self, const Tensor& other) {
    return !self.is_complex() && !other.is_complex();
  }
};

// Half's and bfloat16's neighbours are not float's.
struct Nextafter : Elementwise<at::meta::structured_nextafter, kernel::nextafter, kRealTypes> {
  static bool supports(const Tensor& self, const Tensor& other) {
    const auto wide = [](const Tensor& t) { return t.itemsize() >= 4; };
    return wide(self) && wide(other);
  }
};

Tensor& floorDivideOut(const Tensor& self, const Tensor& other, Tensor& out) {
  for (const Tensor& tensor : {self, other, out}) {
    if (!isComputable(tensor.scalar_type())) {
      return fallBack<at::_ops::floor_divide_out>(self, other, out);
    }
  }
  auto iter = at::TensorIterator::binary_op(out, self, other);
  checkType("floor_divide", iter.common_dtype(), kOrdered);
  launchElementwise(kernel::div_floor, iter, iter.common_dtype());
  return out;
}

Tensor floorDivide(const Tensor& self, const Tensor& other) {
  return at::_ops::div_Tensor_mode::call(self, other, "floor");
}
Tensor& floorDivideInplace(Tensor& self, const Tensor& other) {
  return floorDivideOut(self, other, self);
}

Tensor rsub(const Tensor& self, const Tensor& other, const c10::Scalar& alpha) {
  return at::_ops::sub_Tensor::call(other, self, alpha);
}

Tensor remainderOfScalar(const c10::Scalar& self, const Tensor& other) {
  return at::_ops::remainder_Tensor::call(at::native::wrapped_scalar_tensor(self), other);
}

// a << b and its like are the bitwise operators.
template <class Overload>
Tensor shiftTensor(const Tensor& self, const Tensor& other) {
  return Overload::call(self, other);
}
template <class Overload>
Tensor shiftScalar(const Tensor& self, const c10::Scalar& other) {
  return Overload::call(self, at::native::wrapped_scalar_tensor(other));
}
template <class Overload>
Tensor& shiftTensorInplace(Tensor& self, const Tensor& other) {
  return Overload::call(self, other);
}
template <class Overload>
Tensor& shiftScalarInplace(Tensor& self, const c10::Scalar& other) {
  return Overload::call(self, at::native::wrapped_scalar_tensor(other));
}

} // namespace
} // namespace puone

#include "aten/pointwise/binary_registrations.inc"
