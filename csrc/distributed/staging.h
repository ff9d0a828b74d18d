// SPDX-License-Identifier: BSD-3-Clause
// Host copies of device tensors: how the data of a collective leaves the device and comes back. All
// copies are queued and none waits, if the driver has pinned memory.
#pragma once

#include <ATen/core/Tensor.h>

#include "runtime/stream.h"

namespace puone::distributed {

// Whether the elements follow each other in memory as they are.
bool isDense(const at::Tensor& tensor);

// `elements` of uninitialised host memory in one dimension, pinned where the driver can.
at::Tensor hostBuffer(int64_t elements, at::ScalarType type);

// One dimension of `host`, with as many elements as `device`, gets the elements of `device` in
// their logical order, cast to its type; any strides are taken. kByte stands for the bytes of any
// type, and needs as many elements as `device` has bytes.
void queueToHost(const at::Tensor& device, const at::Tensor& host, const Stream& stream);

// The way back. The host buffer may be released after this call, not changed.
void queueToDevice(const at::Tensor& host, const at::Tensor& device, const Stream& stream);

// The caller may release the tensor, and the allocator may hand its memory out, only after the work
// that is queued on the stream now.
void keepFor(const at::Tensor& device, const Stream& stream);

} // namespace puone::distributed
