// SPDX-License-Identifier: BSD-3-Clause
// Tensors as arguments of kernels that are compiled while the program runs.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

namespace puone {

// Throws c10::Error unless a kernel on `device` can take the tensor as its argument `name`.
void checkTensorArgument(
    const at::Tensor& tensor, const std::string& name, c10::DeviceIndex device);

// Its address. Reading does not separate a tensor from a lazy clone of it.
uint64_t addressOf(const at::Tensor& tensor, bool is_written);

// The number of elements from the first to past the last.
uint64_t extentOf(const at::Tensor& tensor);

} // namespace puone
