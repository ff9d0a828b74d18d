// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/staging.h"

#include <ATen/ops/empty.h>
#include <c10/core/StreamGuard.h>

#include "runtime/device_allocator.h"
#include "runtime/driver.h"
#include "runtime/host_allocator.h"

namespace puone::distributed {
namespace {

using at::Tensor;

bool hasPinnedMemory() {
  return (driverState().capabilities & PUONE_CAP_PINNED_MEMORY) != 0;
}

// Whether the bytes of the tensor in memory are what the host buffer holds.
bool isRaw(const Tensor& device, const Tensor& host) {
  const bool same_type =
      device.scalar_type() == host.scalar_type() || host.scalar_type() == at::kByte;
  return same_type && isDense(device) &&
         static_cast<size_t>(device.nbytes()) == static_cast<size_t>(host.nbytes());
}

// The type of the elements that cross the bus.
at::ScalarType crossingType(const Tensor& device, const Tensor& host) {
  const bool bytes = static_cast<size_t>(device.nbytes()) == static_cast<size_t>(host.nbytes());
  return bytes && host.scalar_type() == at::kByte ? device.scalar_type() : host.scalar_type();
}

void queueBytes(
    void* to, const void* from, size_t bytes, puone_memcpy_kind kind, const Stream& stream) {
  if (bytes > 0) PUONE_CHECK(hal().memcpy_async(to, from, bytes, kind, stream.handle()));
}

// The host allocator hands the memory out again only when the stream has passed this point.
void keepHostFor(const Tensor& host, const Stream& stream) {
  if (hasPinnedMemory()) {
    hostAllocator().record_event(
        host.data_ptr(), host.storage().data_ptr().get_context(), stream.unwrap());
  } else {
    stream.synchronize();
  }
}

} // namespace

bool isDense(const Tensor& tensor) {
  return tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
}

Tensor hostBuffer(int64_t elements, at::ScalarType type) {
  return at::empty({elements}, at::TensorOptions(type).pinned_memory(hasPinnedMemory()));
}

void queueToHost(const Tensor& device, const Tensor& host, const Stream& stream) {
  const c10::StreamGuard on_stream(stream.unwrap());
  const Tensor from =
      isRaw(device, host)
          ? device
          : device.resolve_conj().resolve_neg().to(crossingType(device, host)).contiguous();
  queueBytes(
      host.data_ptr(), from.const_data_ptr(), host.nbytes(), PUONE_MEMCPY_DEVICE_TO_HOST, stream);
  keepHostFor(host, stream);
}

void queueToDevice(const Tensor& host, const Tensor& device, const Stream& stream) {
  const c10::StreamGuard on_stream(stream.unwrap());
  const bool raw = isRaw(device, host);
  const Tensor to =
      raw ? device
          : at::empty(
                device.sizes(),
                at::TensorOptions(crossingType(device, host)).device(device.device()));
  queueBytes(
      to.data_ptr(), host.const_data_ptr(), host.nbytes(), PUONE_MEMCPY_HOST_TO_DEVICE, stream);
  keepHostFor(host, stream);
  if (!raw) device.copy_(to);
}

void keepFor(const Tensor& device, const Stream& stream) {
  if (device.storage())
    deviceAllocator().recordStream(device.storage().data_ptr(), stream.unwrap());
}

} // namespace puone::distributed
