// SPDX-License-Identifier: BSD-3-Clause
#include "aten/core/mirror.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/_copy_from.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "aten/core/launch.h"
#include "aten/core/transfer.h"

namespace puone {
namespace {

// Up to this size, a copy through pinned memory is cheaper than waiting for the stream.
constexpr size_t kStagingLimit = size_t{64} << 10;

// A tensor with gaps is copied with them, which keeps its strides, unless the gaps are most of it.
bool worthCopyingWhole(const at::Tensor& tensor) {
  constexpr size_t kMaxWaste = 4;
  return tensor.is_non_overlapping_and_dense() ||
         spanBytes(tensor) <= std::max<size_t>(kMaxWaste * tensor.nbytes(), 4096);
}

void copyMarks(const at::Tensor& to, const at::Tensor& from) {
  copyMathBits(to, from);
  if (from.unsafeGetTensorImpl()->is_wrapped_number()) {
    to.unsafeGetTensorImpl()->set_wrapped_number(true);
  }
}

at::Tensor hostLike(const at::Tensor& tensor) {
  at::Tensor host =
      at::detail::empty_strided_cpu(tensor.sizes(), tensor.strides(), tensor.scalar_type());
  copyMarks(host, tensor);
  return host;
}

// Where a tensor begins in its storage, in bytes.
size_t beginInStorage(const at::Tensor& tensor) {
  return static_cast<size_t>(tensor.storage_offset()) * tensor.element_size();
}

void requireStrided(const at::Tensor& tensor) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      tensor.layout() == c10::kStrided && !tensor.is_quantized() && tensor.has_storage(),
      "puone: only plain strided tensors are supported on the device, not ",
      tensor.toString(),
      " with layout ",
      tensor.layout());
}

// For destructors: a second error during the unwinding of a first cannot be reported.
void waitQuietly(const Stream& stream) noexcept {
  try {
    stream.synchronize();
  } catch (const std::exception&) {
  }
}

} // namespace

ToHost::~ToHost() {
  if (pending_) waitQuietly(stream_);
}

ToDevice::~ToDevice() {
  if (pending_) waitQuietly(stream_);
}

at::Tensor ToHost::copy(const at::Tensor& tensor, bool read) {
  requireStrided(tensor);
  // Without a kernel that leaves the gaps out, they are copied however large they are.
  const bool whole = worthCopyingWhole(tensor) || !kernel::copy_bits.available();
  const at::Tensor source = whole ? tensor : tensor.contiguous();
  at::Tensor host = hostLike(source);
  if (read && source.numel() != 0) {
    // `source` may be destroyed before the copy has run: its memory is reused in the order of this
    // stream.
    queueToHost(host.data_ptr(), source.const_data_ptr(), spanBytes(source), stream_);
    pending_ = true;
  }
  return host;
}

std::vector<at::Tensor> ToHost::copyTogether(at::ArrayRef<at::Tensor> tensors) {
  constexpr size_t kLargestElement = 16; // offsets stay whole numbers of elements of every type
  size_t begin = SIZE_MAX;
  size_t end = 0;
  for (const at::Tensor& tensor : tensors) {
    requireStrided(tensor);
    begin = std::min(begin, beginInStorage(tensor) / kLargestElement * kLargestElement);
    end = std::max(end, beginInStorage(tensor) + spanBytes(tensor));
  }
  const auto bytes = static_cast<int64_t>(end - begin);
  const at::Tensor all = at::detail::empty_cpu({bytes}, c10::kByte);
  const auto* const from = static_cast<const std::byte*>(tensors.front().storage().data()) + begin;
  queueToHost(all.data_ptr(), from, end - begin, stream_);
  pending_ = true;

  std::vector<at::Tensor> copies;
  for (const at::Tensor& tensor : tensors) {
    const size_t offset = (beginInStorage(tensor) - begin) / tensor.element_size();
    at::Tensor host = at::detail::empty_cpu({0}, tensor.scalar_type());
    host.set_(all.storage(), static_cast<int64_t>(offset), tensor.sizes(), tensor.strides());
    copyMarks(host, tensor);
    copies.push_back(std::move(host));
  }
  return copies;
}

void ToHost::wait() {
  if (std::exchange(pending_, false)) stream_.synchronize();
}

void ToDevice::send(const at::Tensor& device, const at::Tensor& host) {
  const size_t bytes = spanBytes(host);
  if (bytes == 0) return;
  if (bytes <= kStagingLimit) {
    stageToDevice(device.data_ptr(), host.const_data_ptr(), bytes, stream_);
  } else {
    queueToDevice(device.data_ptr(), host.const_data_ptr(), bytes, stream_);
    pending_ = true;
  }
}

at::Tensor ToDevice::copy(const at::Tensor& host) {
  requireStrided(host);
  const at::Tensor source = worthCopyingWhole(host) ? host : host.contiguous();
  at::Tensor device = at::empty_strided(
      source.sizes(), source.strides(), source.options().device(stream_.device()));
  copyMathBits(device, source);
  send(device, source);
  if (!source.is_same(host)) wait();
  return device;
}

void ToDevice::update(const at::Tensor& device, const at::Tensor& host) {
  if (device.sizes() != host.sizes()) {
    device.resize_(host.sizes());
    if (host.is_non_overlapping_and_dense()) device.as_strided_(host.sizes(), host.strides());
  }
  if (device.is_non_overlapping_and_dense() && device.strides() == host.strides() &&
      sameMathBits(device, host)) {
    send(device, host);
  } else {
    // Gaps may belong to other tensors and must not be written.
    at::_copy_from(host, device, /*non_blocking=*/true);
  }
}

void ToDevice::wait() {
  if (std::exchange(pending_, false)) stream_.synchronize();
}

} // namespace puone
