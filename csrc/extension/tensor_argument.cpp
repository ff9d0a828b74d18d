// SPDX-License-Identifier: BSD-3-Clause
#include "extension/tensor_argument.h"

#include <bit>

#include "runtime/device.h"

namespace puone {

void checkTensorArgument(
    const at::Tensor& tensor, const std::string& name, c10::DeviceIndex device) {
  TORCH_CHECK(
      tensor.device() == c10::Device(kDeviceType, device),
      "the argument ",
      name,
      " of a kernel on ",
      c10::Device(kDeviceType, device),
      " is on ",
      tensor.device());
  TORCH_CHECK(
      !tensor.is_neg() && !tensor.is_conj(),
      "the argument ",
      name,
      " is negated or conjugated when it is read: call resolve_neg() or resolve_conj() on it "
      "before");
}

uint64_t addressOf(const at::Tensor& tensor, bool is_written) {
  return std::bit_cast<uint64_t>(is_written ? tensor.mutable_data_ptr() : tensor.const_data_ptr());
}

uint64_t extentOf(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return 0;
  int64_t last = 0;
  for (int64_t d = 0; d < tensor.dim(); ++d) last += (tensor.size(d) - 1) * tensor.stride(d);
  return static_cast<uint64_t>(last + 1);
}

} // namespace puone
