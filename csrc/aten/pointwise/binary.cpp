// SPDX-License-Identifier: BSD-3-Clause
// Functions of two tensors besides the arithmetic ones.
#include <ATen/ScalarOps.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/atan2_meta.h>
#include <ATen/ops/atan2_ops.h>
#include <ATen/ops/bitwise_and_meta.h>
#include <ATen/ops/bitwise_and_ops.h>
#include <ATen/ops/bitwise_left_shift_meta.h>
#include <ATen/ops/bitwise_left_shift_ops.h>
#include <ATen/ops/bitwise_or_meta.h>
#include <ATen/ops/bitwise_or_ops.h>
#include <ATen/ops/bitwise_right_shift_meta.h>
#include <ATen/ops/bitwise_right_shift_ops.h>
#include <ATen/ops/bitwise_xor_meta.h>
#include <ATen/ops/bitwise_xor_ops.h>
#include <ATen/ops/copysign_meta.h>
#include <ATen/ops/copysign_ops.h>
#include <ATen/ops/div_meta.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/floor_divide_ops.h>
#include <ATen/ops/fmax_meta.h>
#include <ATen/ops/fmax_ops.h>
#include <ATen/ops/fmin_meta.h>
#include <ATen/ops/fmin_ops.h>
#include <ATen/ops/fmod_meta.h>
#include <ATen/ops/fmod_ops.h>
#include <ATen/ops/gcd_meta.h>
#include <ATen/ops/gcd_ops.h>
#include <ATen/ops/heaviside_meta.h>
#include <ATen/ops/heaviside_ops.h>
#include <ATen/ops/hypot_meta.h>
#include <ATen/ops/hypot_ops.h>
#include <ATen/ops/lcm_meta.h>
#include <ATen/ops/lcm_ops.h>
#include <ATen/ops/logaddexp2_meta.h>
#include <ATen/ops/logaddexp2_ops.h>
#include <ATen/ops/logaddexp_meta.h>
#include <ATen/ops/logaddexp_ops.h>
#include <ATen/ops/maximum_meta.h>
#include <ATen/ops/maximum_ops.h>
#include <ATen/ops/minimum_meta.h>
#include <ATen/ops/minimum_ops.h>
#include <ATen/ops/nextafter_meta.h>
#include <ATen/ops/nextafter_ops.h>
#include <ATen/ops/remainder_meta.h>
#include <ATen/ops/remainder_ops.h>
#include <ATen/ops/rsub_ops.h>
#include <ATen/ops/special_xlog1py_meta.h>
#include <ATen/ops/special_xlog1py_ops.h>
#include <ATen/ops/sub_meta.h>
#include <ATen/ops/sub_ops.h>
#include <ATen/ops/xlogy_meta.h>
#include <ATen/ops/xlogy_ops.h>
#include <torch/library.h>

#include "aten/core/elementwise.h"

namespace puone {
namespace {

using at::Tensor;

struct DivMode : at::meta::structured_div_Tensor_mode {
  void impl(
      const Tensor& /*self*/,
      const Tensor& /*other*/,
      std::optional<c10::string_view> mode,
      const Tensor& /*out*/) {
    static const Kernel div("div"), trunc("div_trunc"), floor("div_floor");
    const c10::ScalarType type = common_dtype();
    checkType("div", type, mode ? kOrdered : kInexact);
    launchElementwise(!mode ? div : *mode == "trunc" ? trunc : floor, *this, type);
  }
};

// Complex numbers are the CPU's.
template <class Meta, KernelName kName>
struct RealsOnly : Elementwise<Meta, kName, kRealTypes> {
  static bool supports(const Tensor& self, const Tensor& other, const Tensor& /*out*/) {
    return !self.is_complex() && !other.is_complex();
  }
};

// Half's and bfloat16's neighbours are not float's.
struct Nextafter : Elementwise<at::meta::structured_nextafter, "nextafter", kRealTypes> {
  static bool supports(const Tensor& self, const Tensor& other, const Tensor& /*out*/) {
    const auto wide = [](const Tensor& t) { return t.itemsize() >= 4; };
    return wide(self) && wide(other);
  }
};

Tensor& floorDivideOut(const Tensor& self, const Tensor& other, Tensor& out) {
  static const Kernel kernel("div_floor");
  for (const Tensor& tensor : {self, other, out}) {
    if (!isComputable(tensor.scalar_type())) {
      return fallBack<at::_ops::floor_divide_out>(self, other, out);
    }
  }
  auto iter = at::TensorIterator::binary_op(out, self, other);
  checkType("floor_divide", iter.common_dtype(), kOrdered);
  launchElementwise(kernel, iter, iter.common_dtype());
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

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  structured<Elementwise<at::meta::structured_maximum, "maximum", kOrdered>, at::_ops::maximum_out>(
      m);
  structured<Elementwise<at::meta::structured_minimum, "minimum", kOrdered>, at::_ops::minimum_out>(
      m);
  structured<Elementwise<at::meta::structured_fmax, "fmax", kOrdered>, at::_ops::fmax_out>(m);
  structured<Elementwise<at::meta::structured_fmin, "fmin", kOrdered>, at::_ops::fmin_out>(m);
  structured<Elementwise<at::meta::structured_atan2, "atan2", kRealTypes>, at::_ops::atan2_out>(m);
  structured<Elementwise<at::meta::structured_hypot, "hypot", kRealTypes>, at::_ops::hypot_out>(m);
  structured<
      Elementwise<at::meta::structured_heaviside, "heaviside", kOrdered>,
      at::_ops::heaviside_out>(m);
  structured<RealsOnly<at::meta::structured_logaddexp, "logaddexp">, at::_ops::logaddexp_out>(m);
  structured<RealsOnly<at::meta::structured_logaddexp2, "logaddexp2">, at::_ops::logaddexp2_out>(m);
  structured<Elementwise<at::meta::structured_gcd, "gcd", kIntegerTypes>, at::_ops::gcd_out>(m);
  structured<Elementwise<at::meta::structured_lcm, "lcm", kIntegerTypes>, at::_ops::lcm_out>(m);
  structured<
      Elementwise<at::meta::structured_remainder_Tensor, "remainder", kIntegerTypes | kRealTypes>,
      at::_ops::remainder_Tensor_out>(m);
  structured<
      Elementwise<at::meta::structured_fmod_Tensor, "fmod", kIntegerTypes | kRealTypes>,
      at::_ops::fmod_Tensor_out>(m);
  structured<
      Elementwise<at::meta::structured_copysign_Tensor, "copysign", kRealTypes>,
      at::_ops::copysign_out>(m);
  structured<
      Elementwise<at::meta::structured_xlogy_Tensor, "xlogy", kRealTypes>,
      at::_ops::xlogy_OutTensor>(m);
  structured<
      Elementwise<at::meta::structured_special_xlog1py, "xlog1py", kRealTypes>,
      at::_ops::special_xlog1py_out>(m);
  structured<
      Elementwise<at::meta::structured_bitwise_and_Tensor, "bitwise_and", kIntegers>,
      at::_ops::bitwise_and_Tensor,
      at::_ops::bitwise_and_Tensor_out>(m);
  structured<
      Elementwise<at::meta::structured_bitwise_or_Tensor, "bitwise_or", kIntegers>,
      at::_ops::bitwise_or_Tensor_out>(m);
  structured<
      Elementwise<at::meta::structured_bitwise_xor_Tensor, "bitwise_xor", kIntegers>,
      at::_ops::bitwise_xor_Tensor_out>(m);
  structured<
      Elementwise<at::meta::structured_bitwise_left_shift_Tensor, "left_shift", kIntegerTypes>,
      at::_ops::bitwise_left_shift_Tensor_out>(m);
  structured<
      Elementwise<at::meta::structured_bitwise_right_shift_Tensor, "right_shift", kIntegerTypes>,
      at::_ops::bitwise_right_shift_Tensor_out>(m);
  structured<DivMode, at::_ops::div_Tensor_mode, at::_ops::div_out_mode>(m);
  structured<Nextafter, at::_ops::nextafter_out>(m);
  m.impl("floor_divide", TORCH_FN(floorDivide));
  m.impl("floor_divide.out", TORCH_FN(floorDivideOut));
  m.impl("floor_divide_.Tensor", TORCH_FN(floorDivideInplace));
  m.impl("rsub.Tensor", TORCH_FN(rsub));
  m.impl("remainder.Scalar_Tensor", TORCH_FN(remainderOfScalar));
  using at::_ops::bitwise_left_shift__Tensor, at::_ops::bitwise_right_shift__Tensor;
  using at::_ops::bitwise_left_shift_Tensor, at::_ops::bitwise_right_shift_Tensor;
  m.impl("__lshift__.Tensor", TORCH_FN(shiftTensor<bitwise_left_shift_Tensor>));
  m.impl("__lshift__.Scalar", TORCH_FN(shiftScalar<bitwise_left_shift_Tensor>));
  m.impl("__ilshift__.Tensor", TORCH_FN(shiftTensorInplace<bitwise_left_shift__Tensor>));
  m.impl("__ilshift__.Scalar", TORCH_FN(shiftScalarInplace<bitwise_left_shift__Tensor>));
  m.impl("__rshift__.Tensor", TORCH_FN(shiftTensor<bitwise_right_shift_Tensor>));
  m.impl("__rshift__.Scalar", TORCH_FN(shiftScalar<bitwise_right_shift_Tensor>));
  m.impl("__irshift__.Tensor", TORCH_FN(shiftTensorInplace<bitwise_right_shift__Tensor>));
  m.impl("__irshift__.Scalar", TORCH_FN(shiftScalarInplace<bitwise_right_shift__Tensor>));
}

} // namespace puone
