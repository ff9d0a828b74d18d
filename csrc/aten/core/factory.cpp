// SPDX-License-Identifier: BSD-3-Clause
// New tensors: empty, empty_strided and the zero tensor of forward-mode autograd.
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/TensorFactories.h>
#include <c10/core/TensorOptions.h>
#include <torch/library.h>

#include <optional>

#include "aten/core/factory.h"
#include "aten/core/factory_ops.h"
#include "runtime/device.h"
#include "runtime/device_allocator.h"

namespace puone {
namespace {

constexpr c10::DispatchKeySet kKeys{c10::DispatchKey::PrivateUse1};

void checkOptions(std::optional<c10::Layout> layout, std::optional<bool> pin_memory) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      c10::layout_or_default(layout) == c10::Layout::Strided,
      "puone: only strided tensors are supported, not layout ",
      *layout);
  TORCH_CHECK(!c10::pinned_memory_or_default(pin_memory), "Only dense CPU tensors can be pinned");
}

// Calls make() with the requested device current, since the allocator serves the current device.
template <typename Make>
at::Tensor makeOn(std::optional<c10::Device> device, const Make& make) {
  std::optional<DeviceScope> scope;
  if (device && device->has_index() && device->index() != currentDevice()) {
    TORCH_CHECK_VALUE(
        device->index() < deviceCount(),
        "puone: invalid device index ",
        static_cast<int>(device->index()),
        ", there are ",
        static_cast<int>(deviceCount()),
        " devices");
    scope.emplace(device->index());
  }
  at::Tensor tensor = make();
  const auto& context = at::globalContext();
  if (C10_UNLIKELY(
          context.deterministicAlgorithms() && context.deterministicFillUninitializedMemory())) {
    at::native::fill_empty_deterministic_(tensor);
  }
  return tensor;
}

// [quote: empty]
at::Tensor empty(
    c10::IntArrayRef size,
    std::optional<c10::ScalarType> dtype,
    std::optional<c10::Layout> layout,
    std::optional<c10::Device> device,
    std::optional<bool> pin_memory,
    std::optional<c10::MemoryFormat> memory_format) {
  checkOptions(layout, pin_memory);
  return makeOn(device, [&]() -> at::Tensor {
    return at::detail::empty_generic(
        size, &deviceAllocator(), kKeys, c10::dtype_or_default(dtype), memory_format);
  });
}
// [end: empty]

at::Tensor emptyStrided(
    c10::IntArrayRef size,
    c10::IntArrayRef stride,
    std::optional<c10::ScalarType> dtype,
    std::optional<c10::Layout> layout,
    std::optional<c10::Device> device,
    std::optional<bool> pin_memory) {
  checkOptions(layout, pin_memory);
  return makeOn(device, [&]() -> at::Tensor {
    return at::detail::empty_strided_generic(
        size, stride, &deviceAllocator(), kKeys, c10::dtype_or_default(dtype));
  });
}

// A tensor of zeros without memory: every operator checks its dispatch key before it reads data.
at::Tensor efficientZeroTensor(
    c10::IntArrayRef size,
    std::optional<c10::ScalarType> dtype,
    std::optional<c10::Layout> layout,
    std::optional<c10::Device> device,
    std::optional<bool> pin_memory) {
  checkOptions(layout, pin_memory);
  const c10::DeviceIndex index = resolveDevice(device ? device->index() : c10::DeviceIndex{-1});
  at::native::ZeroTensorAllocator allocator(c10::Device(kDeviceType, index));
  return at::detail::empty_generic(
      size,
      &allocator,
      kKeys.add(c10::DispatchKey::ZeroTensor),
      c10::dtype_or_default(dtype),
      std::nullopt);
}

} // namespace

at::Tensor newResult(
    c10::IntArrayRef sizes, c10::IntArrayRef strides, const c10::TensorOptions& options) {
  const auto dtype = c10::typeMetaToScalarType(options.dtype());
  if (!strides.empty()) {
    return emptyStrided(sizes, strides, dtype, std::nullopt, options.device(), std::nullopt);
  }
  return empty(
      sizes, dtype, std::nullopt, options.device(), std::nullopt, options.memory_format_opt());
}

} // namespace puone

#include "aten/core/factory_registrations.inc"
