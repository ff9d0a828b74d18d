// SPDX-License-Identifier: BSD-3-Clause
// Copies for which the driver has no kernel: bytes cross the bus as they are, and the host casts
// and rearranges them. They need only memcpy_async, and return when they are complete.
#pragma once

#include <ATen/core/Tensor.h>

namespace puone {

// Whether a kernel of the driver can copy between any layouts of these tensors on the device.
bool hasCopyKernel(const at::Tensor& dst, const at::Tensor& src);

// A host tensor with the sizes, strides, values and math bits of a device's.
at::Tensor readToHost(const at::Tensor& src);

// Writes the values of a host tensor, which is expanded and cast, to a tensor of any layout on a
// device. Memory between the elements of `dst` is not touched.
void writeFromHost(const at::Tensor& dst, const at::Tensor& src);

} // namespace puone
