// SPDX-License-Identifier: BSD-3-Clause
// Storages: an own StorageImpl, its factory, resizing, copy on write.
#pragma once

#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/native/ResizeCommon.h>
#include <c10/core/Storage.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/impl/COW.h>

namespace probe {
namespace {

struct Storage final : c10::StorageImpl {
  Storage(c10::SymInt bytes, c10::DataPtr data, c10::Allocator* allocator, bool resizable)
      : c10::StorageImpl(
            c10::StorageImpl::use_byte_size_t(),
            std::move(bytes),
            std::move(data),
            allocator,
            resizable) {}

  void release_resources() override {
    c10::StorageImpl::release_resources();
  }
};

c10::intrusive_ptr<c10::StorageImpl> makeStorage(
    c10::StorageImpl::use_byte_size_t,
    c10::SymInt bytes,
    c10::DataPtr data,
    c10::Allocator* allocator,
    bool resizable) {
  return c10::make_intrusive<Storage>(std::move(bytes), std::move(data), allocator, resizable);
}

void useStorages(const c10::Storage& storage, c10::DataPtr data, c10::Allocator* allocator) {
  new Storage(1, allocator->allocate(1), allocator, true);
  c10::StorageImplCreateHelper factory = &makeStorage;
  c10::SetStorageImplCreate(c10::DeviceType::PrivateUse1, factory);
  (void)c10::GetStorageImplCreate(c10::DeviceType::PrivateUse1);
  c10::Storage fresh(
      c10::make_storage_impl(
          c10::StorageImpl::use_byte_size_t(),
          1,
          c10::DataPtr(),
          allocator,
          true,
          c10::Device(c10::DeviceType::PrivateUse1, 0)));
  c10::StorageImpl* impl = storage.unsafeGetStorageImpl();
  (void)impl->resizable();
  (void)impl->device();
  (void)impl->allocator();
  (void)impl->data();
  (void)impl->mutable_data();
  (void)impl->data_ptr();
  (void)impl->mutable_data_ptr();
  impl->set_nbytes(impl->nbytes());
  (void)impl->sym_nbytes();
  impl->set_data_ptr_noswap(std::move(data));
  (void)fresh.data_ptr();
  (void)fresh.use_count();

  if (c10::impl::cow::has_simple_data_ptr(*impl)) {
    (void)c10::impl::cow::lazy_clone_storage(*impl);
  }
  (void)c10::impl::cow::is_cow_data_ptr(storage.data_ptr());
}

void useShapes(const at::Tensor& tensor, c10::Allocator* allocator, c10::TensorImpl* impl) {
  const c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);
  (void)at::detail::empty_generic({2}, allocator, keys, at::kFloat, std::nullopt);
  (void)at::detail::empty_strided_generic({2}, {1}, allocator, keys, at::kFloat);
  (void)at::detail::empty_cpu({2}, at::kFloat);
  (void)at::detail::empty_strided_cpu({2}, {1}, at::kFloat);
  (void)at::detail::computeStorageNbytes({2}, {1}, 4);
  (void)at::detail::computeStorageNbytesContiguous({2}, 4);
  (void)at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(tensor.storage()), keys, tensor.dtype());
  (void)at::native::resize_output(tensor, {2});
  (void)at::native::resize_output_check(tensor, {2});
  (void)at::native::resize_impl_cpu_(impl, {2}, std::nullopt);
  at::native::resize_bytes_cpu(tensor.storage().unsafeGetStorageImpl(), 8);
  at::native::resize_bytes_nocuda(tensor.storage(), 8);
  at::native::maybe_resize_storage_cpu(impl, 8);
  at::native::setStrided(tensor, c10::IntArrayRef({2}), c10::IntArrayRef({1}), int64_t{0});
  at::native::checkInBoundsForStorage(
      c10::IntArrayRef({2}), c10::IntArrayRef({1}), int64_t{0}, tensor.dtype(), tensor.storage());
}

} // namespace
} // namespace probe
