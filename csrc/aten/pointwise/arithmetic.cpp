// SPDX-License-Identifier: BSD-3-Clause
// add, sub, mul, div.
#include <ATen/ops/add_meta.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/div_meta.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/mul_meta.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/sub_meta.h>
#include <ATen/ops/sub_ops.h>
#include <torch/library.h>

#include "aten/core/elementwise.h"

namespace puone {
namespace {

using at::Tensor;

template <class Meta, KernelName kName>
struct WithAlpha : Meta {
  void impl(
      const Tensor& /*self*/,
      const Tensor& /*other*/,
      const c10::Scalar& alpha,
      const Tensor& /*out*/) {
    static constexpr KernelName name = kName;
    static const Kernel kernel(name.text);
    launchElementwise(kernel, *this, this->common_dtype(), {alpha});
  }
};

using Add = WithAlpha<at::meta::structured_add_Tensor, "add">;
using Sub = WithAlpha<at::meta::structured_sub_Tensor, "sub">;
using Mul = Elementwise<at::meta::structured_mul_Tensor, "mul">;
using Div = Elementwise<at::meta::structured_div_Tensor, "div", kInexact>;

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  structured<Add, at::_ops::add_Tensor, at::_ops::add__Tensor, at::_ops::add_out>(m);
  structured<Sub, at::_ops::sub_Tensor, at::_ops::sub__Tensor, at::_ops::sub_out>(m);
  structured<Mul, at::_ops::mul_Tensor, at::_ops::mul__Tensor, at::_ops::mul_out>(m);
  structured<Div, at::_ops::div_Tensor, at::_ops::div__Tensor, at::_ops::div_out>(m);
}

} // namespace puone
