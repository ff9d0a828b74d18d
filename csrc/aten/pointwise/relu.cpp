// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/core/Tensor.h>

#include "aten/pointwise/relu_ops.h"
#include "aten/pointwise/unary_operator.h"

namespace puone {
namespace {

using Relu = UnaryOperator<kernel::relu, kIntegerTypes | kRealTypes, at::_ops::relu>;

} // namespace
} // namespace puone

#include "aten/pointwise/relu_registrations.inc"
