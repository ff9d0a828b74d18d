// SPDX-License-Identifier: BSD-3-Clause
// New tensors for kernels, made without the dispatcher.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorOptions.h>

namespace puone {

// Uninitialised memory for a result: dense in `strides` if there are any, else contiguous in the
// options' memory format.
at::Tensor newResult(
    c10::IntArrayRef sizes, c10::IntArrayRef strides, const c10::TensorOptions& options);

} // namespace puone
