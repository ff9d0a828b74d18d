// SPDX-License-Identifier: BSD-3-Clause
// Moving bytes between host and device, below the level of shapes and types.
#pragma once

#include <ATen/core/Tensor.h>

#include "runtime/stream.h"

namespace puone {

// Queues a copy. Host memory must stay valid until the stream has passed it. While the stream is
// being captured, it must be pinned; otherwise, c10::Error.
void queueToDevice(void* dst, const void* src, size_t bytes, const Stream& stream);
void queueToHost(void* dst, const void* src, size_t bytes, const Stream& stream);
void queueOnDevice(void* dst, const void* src, size_t bytes, const Stream& stream);

// Queues a copy from a pinned duplicate of `src`, which may be changed or freed after the return.
// Waits for the copy instead where the driver has no pinned memory.
void stageToDevice(void* dst, const void* src, size_t bytes, const Stream& stream);

// Keeps the memory of a pinned tensor from being reused before the stream has passed what is queued
// now; of a captured copy, as long as the graph lives.
void keepForStream(const at::Tensor& pinned, const Stream& stream);

// Bytes from the first to past the last element of a strided tensor, gaps included.
size_t spanBytes(const at::Tensor& tensor);

// The same conj and neg bits, or none at all: then equal bits in memory mean equal values.
inline bool sameMathBits(const at::Tensor& a, const at::Tensor& b) {
  return a.is_conj() == b.is_conj() && a.is_neg() == b.is_neg();
}

inline void copyMathBits(const at::Tensor& to, const at::Tensor& from) {
  to._set_conj(from.is_conj());
  to._set_neg(from.is_neg());
}

} // namespace puone
