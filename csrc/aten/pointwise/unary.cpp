// SPDX-License-Identifier: BSD-3-Clause
// Exponentials, logarithms, roots, trigonometric and hyperbolic functions. The functional form is
// registered of those that models call on small tensors.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "aten/core/elementwise.h"
#include "aten/pointwise/unary_ops.h"

#include "aten/pointwise/unary_registrations.inc"
