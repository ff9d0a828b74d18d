// SPDX-License-Identifier: BSD-3-Clause
// Tensors with an implementation of their own, and the meta data a backend attaches to others.
#pragma once

#include "version.h"

#include <ATen/OpaqueTensorImpl.h>
#include <c10/core/Storage.h>
#include <c10/core/TensorImpl.h>
#include <c10/core/TensorOptions.h>
#include <torch/csrc/jit/serialization/pickler.h>

namespace probe {
namespace {

struct Tensor final : c10::TensorImpl {
  Tensor(c10::Storage&& storage, c10::DispatchKeySet keys, const caffe2::TypeMeta type)
      : c10::TensorImpl(std::move(storage), keys, type) {
    set_custom_sizes_strides(c10::TensorImpl::SizesStridesPolicy::CustomSizes);
    set_custom_device(true);
    set_custom_layout(true);
  }

  void release_resources() override;
  bool is_strides_like_custom(at::MemoryFormat) const override;
  int64_t size_custom(int64_t) const override;
  c10::SymInt sym_size_custom(int64_t) const override;
  c10::IntArrayRef sizes_custom() const override;
  c10::IntArrayRef strides_custom() const override;
  int64_t numel_custom() const override;
  int64_t storage_offset_custom() const override;
  int64_t dim_custom() const override;
  c10::Device device_custom() const override;
  c10::Layout layout_custom() const override;
  c10::SymIntArrayRef sym_sizes_custom() const override;
  c10::SymIntArrayRef sym_strides_custom() const override;
  c10::SymInt sym_numel_custom() const override;
  c10::SymInt sym_storage_offset_custom() const override;
  bool has_storage() const override;
  const c10::Storage& storage() const override;
  c10::Layout layout_impl() const override;
  const char* tensorimpl_type_name() const override;
  void set_size(int64_t, int64_t) override;
  void set_stride(int64_t, int64_t) override;
  void set_storage_offset(int64_t) override;
  c10::intrusive_ptr<c10::TensorImpl> shallow_copy_and_detach(
      const c10::VariableVersion&, bool) const override;
  c10::intrusive_ptr<c10::TensorImpl> shallow_copy_and_detach(
      c10::VariableVersion&&, bool) const override;
  void shallow_copy_from(const c10::intrusive_ptr<c10::TensorImpl>&) override;
#if !PROBE_TORCH(2, 9)
  bool is_contiguous_custom(at::MemoryFormat) const override;
  bool is_non_overlapping_and_dense_custom() const override;
#endif
#if PROBE_TORCH(2, 9)
  c10::SymBool sym_is_non_overlapping_and_dense_custom() const override;
  c10::SymBool sym_is_contiguous_custom(at::MemoryFormat) const override;
#endif
};

struct BackendMeta final : c10::BackendMeta {
  c10::intrusive_ptr<c10::BackendMeta> clone(
      const c10::intrusive_ptr<c10::BackendMeta>& self) const override {
    return self;
  }
};

struct AutogradMeta final : c10::AutogradMetaInterface {
  void set_requires_grad(bool, at::TensorImpl*) override;
  bool requires_grad() const override;
  at::Tensor& mutable_grad() override;
  const at::Tensor& grad() const override;
  const at::Tensor& fw_grad(uint64_t, const at::TensorBase&) const override;
  void set_fw_grad(const at::TensorBase&, const at::TensorBase&, uint64_t, bool) override;
};

void writeMeta(const at::Tensor&, std::unordered_map<std::string, bool>&) {}

void useTensors(const at::Tensor& tensor, c10::Storage storage) {
  new Tensor(std::move(storage), tensor.key_set(), tensor.dtype());
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  impl->set_autograd_meta(std::make_unique<AutogradMeta>());
  impl->set_backend_meta(c10::make_intrusive<BackendMeta>());
  (void)impl->get_backend_meta();
  (void)impl->get_backend_meta_intrusive_ptr();
  impl->set_sizes_and_strides(c10::IntArrayRef({2}), c10::IntArrayRef({1}));
  impl->set_sizes_contiguous({2});
  impl->set_storage_offset(0);
  impl->set_storage_keep_dtype(tensor.storage());
  impl->set_storage_and_dtype(tensor.storage(), tensor.dtype());
  impl->bump_version();
  (void)impl->unsafe_storage();
  (void)impl->generic_sizes<int64_t>();
  (void)impl->is_wrapped_number();
  (void)impl->is_non_overlapping_and_dense();
  (void)impl->version_counter();
  impl->empty_tensor_restride(c10::MemoryFormat::ChannelsLast);
  at::detail::make_tensor<at::OpaqueTensorImpl<int>>(
      tensor.key_set(), tensor.dtype(), tensor.device(), 1, tensor.sizes());
  const auto options = c10::TensorOptions()
                           .device(c10::DeviceType::PrivateUse1, 0)
                           .dtype(at::kFloat)
                           .layout(c10::kStrided)
                           .memory_format(c10::MemoryFormat::Contiguous)
                           .pinned_memory(false)
                           .requires_grad(false);
  (void)options.computeDispatchKey();
  (void)options.device_opt();
  torch::jit::TensorBackendMetaRegistry(
      c10::DeviceType::PrivateUse1, &writeMeta, [](const at::Tensor& t, auto& map) {
        writeMeta(t, map);
      });
  (void)torch::jit::GetBackendMetaSerialization();
  (void)torch::jit::GetBackendMetaAllowlist();
  auto metadata = torch::jit::getTensorMetadata(tensor);
  torch::jit::setTensorMetadata(tensor, metadata);
}

} // namespace
} // namespace probe
