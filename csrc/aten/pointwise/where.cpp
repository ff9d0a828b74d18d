// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/ops/result_type.h>
#include <torch/library.h>

#include "aten/core/elementwise.h"
#include "aten/pointwise/where_ops.h"

namespace puone {
namespace {

using at::Tensor;

// `out` may be undefined.
Tensor whereInto(
    const Tensor& out, const Tensor& condition, const Tensor& self, const Tensor& other) {
  TORCH_CHECK(
      condition.scalar_type() == c10::ScalarType::Bool ||
          condition.scalar_type() == c10::ScalarType::Byte,
      "where expected condition to be a boolean tensor, but got a tensor with dtype ",
      condition.scalar_type());
  const c10::ScalarType type = at::result_type(self, other);
  at::TensorIteratorConfig config;
  config.check_all_same_dtype(false)
      .allow_cpu_scalars(true)
      .add_owned_output(out)
      .add_owned_const_input(condition)
      .add_owned_const_input(self)
      .add_owned_const_input(other);
  if (!out.defined()) {
    c10::Device device = condition.device();
    for (const Tensor& tensor : {self, other}) {
      if (device.is_cpu()) device = tensor.device();
    }
    config.declare_static_dtype_and_device(type, device);
  }
  auto iter = config.build();
  // An integer of 64 bits is moved the same with or without a sign.
  const bool wide = type == c10::ScalarType::UInt64;
  launchElementwise(kernel::where, iter, wide ? c10::ScalarType::Long : type);
  return iter.output();
}

bool whereSupports(const Tensor& self, const Tensor& other) {
  return kernelDtype(self.scalar_type()) && kernelDtype(other.scalar_type());
}

Tensor where(const Tensor& condition, const Tensor& self, const Tensor& other) {
  if (!whereSupports(self, other)) return fallBack<at::_ops::where_self>(condition, self, other);
  return whereInto({}, condition, self, other);
}

Tensor& whereOut(const Tensor& condition, const Tensor& self, const Tensor& other, Tensor& out) {
  if (!whereSupports(self, other)) {
    return fallBack<at::_ops::where_self_out>(condition, self, other, out);
  }
  const c10::ScalarType type = at::result_type(self, other);
  TORCH_CHECK(
      out.scalar_type() == type, "Expected out type to be ", type, " but got ", out.scalar_type());
  whereInto(out, condition, self, other);
  return out;
}

} // namespace
} // namespace puone

#include "aten/pointwise/where_registrations.inc"
