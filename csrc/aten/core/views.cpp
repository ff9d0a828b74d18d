// SPDX-License-Identifier: BSD-3-Clause
// Operators that change or share metadata and storage and never touch elements: the view family,
// resize_ and set_. Views need nothing of the device, so torch's own functions serve.
#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

#include "aten/core/views_ops.h"
#include "runtime/device.h"
#include "runtime/device_allocator.h"

namespace puone {
namespace {

// A storage without memory, on the device of `like`.
c10::Storage emptyStorage(const at::Tensor& like, size_t bytes) {
  const DeviceScope scope(like.device().index());
  return c10::Storage(
      c10::make_intrusive<c10::StorageImpl>(
          c10::StorageImpl::use_byte_size_t(), bytes, &deviceAllocator(), /*resizable=*/true));
}

// Gives the tensor a new size, growing its storage if it is too small. Elements that exist keep
// their value, as far as the storage reaches.
void resize(at::TensorImpl* self, c10::IntArrayRef size, c10::OptionalIntArrayRef stride) {
  if (self->sizes() == size && (!stride || self->strides() == *stride)) {
    return;
  }
  if (stride) {
    self->set_sizes_and_strides(size, *stride);
  } else {
    self->set_sizes_contiguous(size);
  }
  if (self->numel() == 0) {
    return;
  }
  const size_t bytes = at::detail::computeStorageNbytes(
      self->sizes(), self->strides(), self->dtype().itemsize(), self->storage_offset());
  const c10::Storage& storage = self->unsafe_storage();
  if (bytes > storage.nbytes()) {
    at::detail::getPrivateUse1Hooks().resizePrivateUse1Bytes(storage, bytes);
  }
}

const at::Tensor& resize_(
    const at::Tensor& self, c10::IntArrayRef size, std::optional<c10::MemoryFormat> memory_format) {
  at::TensorImpl* impl = self.unsafeGetTensorImpl();
  const auto old_bytes = static_cast<int64_t>(impl->unsafe_storage().nbytes());
  resize(impl, size, std::nullopt);
  if (memory_format) {
    TORCH_CHECK(
        *memory_format != c10::MemoryFormat::Preserve, "Unsupported memory format", *memory_format);
    impl->empty_tensor_restride(*memory_format);
  }
  const auto& context = at::globalContext();
  if (C10_UNLIKELY(
          context.deterministicAlgorithms() && context.deterministicFillUninitializedMemory())) {
    at::native::fill_resize_deterministic_(self, old_bytes);
  }
  return self;
}

at::Tensor& setStorage(
    at::Tensor& self,
    c10::Storage source,
    int64_t storage_offset,
    c10::IntArrayRef size,
    c10::IntArrayRef stride) {
  at::native::checkSetStorage(self, std::move(source), storage_offset, size, stride);
  self.unsafeGetTensorImpl()->set_storage_offset(storage_offset);
  // An absent stride arrives as a null array and means contiguous.
  resize(
      self.unsafeGetTensorImpl(),
      size,
      stride.data() != nullptr ? c10::OptionalIntArrayRef(stride) : std::nullopt);
  return self;
}

at::Tensor& setEmpty(at::Tensor& self) {
  return setStorage(self, emptyStorage(self, 0), 0, {0}, {});
}

bool isDense(const at::Tensor& tensor) {
  return (tensor.is_cpu() || tensor.is_privateuseone()) &&
         tensor.key_set().has_any(c10::DispatchKeySet(c10::DispatchKey::Dense));
}

// Whether `from` may become the data of `self`. torch itself says no for a device it does not know;
// then Module.to replaces parameters instead of moving them, and modules that shared one no longer
// do, nor does an optimizer that was made before.
bool hasCompatibleShallowCopyType(const at::Tensor& self, const at::Tensor& from) {
  return (isDense(self) && isDense(from)) || self.key_set() == from.key_set();
}

} // namespace
} // namespace puone

#include "aten/core/views_registrations.inc"
