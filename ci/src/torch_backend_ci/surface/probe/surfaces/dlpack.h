// SPDX-License-Identifier: BSD-3-Clause
// Exchange of tensors by DLPack and from raw memory.
#pragma once

#include "version.h"

#include <ATen/DLConvertor.h>
#include <ATen/ops/from_blob.h>

namespace probe {
namespace {

void useExchange(const at::Tensor& tensor, void* memory) {
  DLManagedTensor* exported = at::toDLPack(tensor);
#if PROBE_TORCH(2, 6)
  (void)at::fromDLPack(exported, [](void*) {});
#else
  (void)at::fromDLPack(exported);
#endif
#if PROBE_TORCH(2, 9)
  (void)at::fromDLPackVersioned(at::toDLPackVersioned(tensor));
#endif
#if PROBE_TORCH(2, 10)
  (void)at::dlDeviceToTorchDevice(at::torchDeviceToDLDevice(tensor.device()).device_type, 0);
#endif
  (void)at::getDLDataType(tensor);
  (void)at::getDLContext(tensor, int64_t{0});
  (void)at::from_blob(memory, {2}, [](void*) {}, tensor.options(), tensor.device());
  (void)at::from_blob(memory, {2}, {1}, [](void*) {}, tensor.options());
  (void)at::for_blob(memory, {2})
      .strides({1})
      .storage_offset(0)
      .deleter([](void*) {})
      .target_device(tensor.device())
      .options(tensor.options())
      .make_tensor();
}

} // namespace
} // namespace probe
