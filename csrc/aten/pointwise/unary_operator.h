// SPDX-License-Identifier: BSD-3-Clause
// Elementwise operators of one tensor for which PyTorch has no meta function.
#pragma once

#include "aten/core/elementwise.h"
#include "aten/core/registration.h"

namespace puone {

// The functional, in-place and out forms of an operator of one tensor that has no meta.
template <const ElementwiseKernel& kKernel, uint32_t kTypes, class Overload>
struct UnaryOperator {
  static at::Tensor& out(const at::Tensor& self, at::Tensor& result) {
    if (isComputable(self.scalar_type())) {
      launch(self, result);
    } else {
      result.copy_(fallBack<Overload>(self));
    }
    return result;
  }
  static at::Tensor functional(const at::Tensor& self) {
    if (!isComputable(self.scalar_type())) return fallBack<Overload>(self);
    at::Tensor result;
    return launch(self, result);
  }
  static at::Tensor& inplace(at::Tensor& self) {
    return out(self, self);
  }

 private:
  static at::Tensor launch(const at::Tensor& self, at::Tensor& result) {
    checkType(kKernel.name(), self.scalar_type(), kTypes);
    auto iter = at::TensorIterator::unary_op(result, self);
    launchElementwise(kKernel, iter, self.scalar_type());
    return iter.output();
  }
};

} // namespace puone
