// SPDX-License-Identifier: BSD-3-Clause
#include "aten/core/transfer.h"

#include <ATen/EmptyTensor.h>

#include <cstring>

#include "runtime/capture.h"
#include "runtime/driver.h"
#include "runtime/host_allocator.h"

namespace puone {

namespace {

// The host may change or free ordinary memory before the graph is launched, or after.
void requireLasting(const void* host, const Stream& stream) {
  if (!isCapturing(stream)) return;
  TORCH_CHECK(
      isPinned(host),
      "a copy between a puone device and ordinary host memory cannot be captured in a graph, and "
      "neither can what needs one, such as item(), cpu() and tensors made of Python lists: do it "
      "before or after the capture, or use pinned memory and non_blocking=True");
}

} // namespace

void queueToDevice(void* dst, const void* src, size_t bytes, const Stream& stream) {
  requireLasting(src, stream);
  PUONE_CHECK(hal().memcpy_async(dst, src, bytes, PUONE_MEMCPY_HOST_TO_DEVICE, stream.handle()));
}

void queueToHost(void* dst, const void* src, size_t bytes, const Stream& stream) {
  requireLasting(dst, stream);
  PUONE_CHECK(hal().memcpy_async(dst, src, bytes, PUONE_MEMCPY_DEVICE_TO_HOST, stream.handle()));
}

void queueOnDevice(void* dst, const void* src, size_t bytes, const Stream& stream) {
  PUONE_CHECK(hal().memcpy_async(dst, src, bytes, PUONE_MEMCPY_DEVICE_TO_DEVICE, stream.handle()));
}

void stageToDevice(void* dst, const void* src, size_t bytes, const Stream& stream) {
  requireLasting(src, stream);
  if ((driverState().capabilities & PUONE_CAP_PINNED_MEMORY) == 0) {
    queueToDevice(dst, src, bytes, stream);
    stream.synchronize();
    return;
  }
  const at::DataPtr block = hostAllocator().allocate(bytes);
  std::memcpy(block.get(), src, bytes);
  queueToDevice(dst, block.get(), bytes, stream);
  // The allocator gives the block out again only after the stream has passed the copy.
  hostAllocator().record_event(block.get(), block.get_context(), stream.unwrap());
}

void keepForStream(const at::Tensor& pinned, const Stream& stream) {
  const c10::Storage& storage = pinned.storage();
  if (const auto capture = captureOf(stream)) {
    capture->keep(storage);
    return;
  }
  const at::DataPtr& memory = storage.data_ptr();
  hostAllocator().record_event(memory.get(), memory.get_context(), stream.unwrap());
}

size_t spanBytes(const at::Tensor& tensor) {
  return at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.itemsize());
}

} // namespace puone
