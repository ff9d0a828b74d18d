// SPDX-License-Identifier: BSD-3-Clause
// Comparisons, and logic on the truth of elements.
#include <ATen/core/Tensor.h>
#include <ATen/ops/eq_meta.h>
#include <ATen/ops/eq_ops.h>
#include <ATen/ops/ge_meta.h>
#include <ATen/ops/ge_ops.h>
#include <ATen/ops/gt_meta.h>
#include <ATen/ops/gt_ops.h>
#include <ATen/ops/le_meta.h>
#include <ATen/ops/le_ops.h>
#include <ATen/ops/logical_and_ops.h>
#include <ATen/ops/logical_or_ops.h>
#include <ATen/ops/logical_xor_ops.h>
#include <ATen/ops/lt_meta.h>
#include <ATen/ops/lt_ops.h>
#include <ATen/ops/ne_meta.h>
#include <ATen/ops/ne_ops.h>
#include <torch/library.h>

#include "aten/core/elementwise.h"

namespace puone {
namespace {

using at::Tensor;

template <class Overload, KernelName kName>
Tensor& logicalOut(const Tensor& self, const Tensor& other, Tensor& out) {
  static constexpr KernelName name = kName;
  static const Kernel kernel(name.text);
  for (const Tensor& tensor : {self, other, out}) {
    if (!isComputable(tensor.scalar_type())) return fallBack<Overload>(self, other, out);
  }
  auto iter = at::TensorIterator::comparison_op(out, self, other);
  launchElementwise(kernel, iter, iter.common_dtype());
  return out;
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  structured<
      Elementwise<at::meta::structured_eq_Scalar, "eq">,
      at::_ops::eq_Scalar,
      at::_ops::eq_Scalar_out>(m);
  structured<
      Elementwise<at::meta::structured_eq_Tensor, "eq">,
      at::_ops::eq_Tensor,
      at::_ops::eq_Tensor_out>(m);
  structured<
      Elementwise<at::meta::structured_ne_Scalar, "ne">,
      at::_ops::ne_Scalar,
      at::_ops::ne_Scalar_out>(m);
  structured<Elementwise<at::meta::structured_ne_Tensor, "ne">, at::_ops::ne_Tensor_out>(m);
  structured<Elementwise<at::meta::structured_lt_Scalar, "lt", kOrdered>, at::_ops::lt_Scalar_out>(
      m);
  structured<
      Elementwise<at::meta::structured_lt_Tensor, "lt", kOrdered>,
      at::_ops::lt_Tensor,
      at::_ops::lt_Tensor_out>(m);
  structured<Elementwise<at::meta::structured_le_Scalar, "le", kOrdered>, at::_ops::le_Scalar_out>(
      m);
  structured<
      Elementwise<at::meta::structured_le_Tensor, "le", kOrdered>,
      at::_ops::le_Tensor,
      at::_ops::le_Tensor_out>(m);
  structured<
      Elementwise<at::meta::structured_gt_Scalar, "gt", kOrdered>,
      at::_ops::gt_Scalar,
      at::_ops::gt_Scalar_out>(m);
  structured<Elementwise<at::meta::structured_gt_Tensor, "gt", kOrdered>, at::_ops::gt_Tensor_out>(
      m);
  structured<Elementwise<at::meta::structured_ge_Scalar, "ge", kOrdered>, at::_ops::ge_Scalar_out>(
      m);
  structured<Elementwise<at::meta::structured_ge_Tensor, "ge", kOrdered>, at::_ops::ge_Tensor_out>(
      m);
  m.impl("logical_and.out", TORCH_FN((logicalOut<at::_ops::logical_and_out, "logical_and">)));
  m.impl("logical_or.out", TORCH_FN((logicalOut<at::_ops::logical_or_out, "logical_or">)));
  m.impl("logical_xor.out", TORCH_FN((logicalOut<at::_ops::logical_xor_out, "logical_xor">)));
}

} // namespace puone
