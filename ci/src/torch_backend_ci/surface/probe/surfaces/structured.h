// SPDX-License-Identifier: BSD-3-Clause
// Structured operators, TensorIterator, and what checks their operands.
#pragma once

#include "version.h"

#include <ATen/ExpandUtils.h>
#include <ATen/InferSize.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ScalarOps.h>
#include <ATen/TensorIterator.h>
#include <ATen/TensorMeta.h>
#include <ATen/TensorUtils.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/add_meta.h>
#include <ATen/ops/mm_meta.h>

namespace probe {
namespace {

// Structured operators of PyTorch, computed by the backend: their meta functions are PyTorch's.
struct MatrixProduct final : at::meta::structured_mm {
  const at::Tensor& maybe_get_output(int64_t) override;
#if PROBE_TORCH(2, 13)
  void set_output_strided(int64_t, c10::IntArrayRef, c10::IntArrayRef, c10::TensorOptions) override;
  void set_output_raw_strided(
      int64_t, c10::IntArrayRef, c10::IntArrayRef, c10::TensorOptions) override;
#else
  void set_output_strided(
      int64_t, c10::IntArrayRef, c10::IntArrayRef, c10::TensorOptions, at::DimnameList) override;
  void set_output_raw_strided(
      int64_t, c10::IntArrayRef, c10::IntArrayRef, c10::TensorOptions, at::DimnameList) override;
#endif
};

struct Sum final : at::meta::structured_add_Tensor {
  const at::Tensor& maybe_get_output(int64_t) override;
#if PROBE_TORCH(2, 13)
  void set_output_raw_strided(
      int64_t, c10::IntArrayRef, c10::IntArrayRef, c10::TensorOptions) override;
#else
  void set_output_raw_strided(
      int64_t, c10::IntArrayRef, c10::IntArrayRef, c10::TensorOptions, at::DimnameList) override;
#endif
};

// An operator of the backend's own that is structured the same way.
struct structured_probe : at::impl::MetaBase {
  void meta(const at::Tensor& self);
};
struct structured_probe_out : structured_probe {
  void impl(const at::Tensor& self);
};

} // namespace

TORCH_META_FUNC(probe)(const at::Tensor& self) {
  set_output_raw_strided(0, self.sizes(), {}, self.options());
  set_output_strided(0, self.sizes(), self.strides(), self.options());
  set_output_contiguous(0, self.sizes(), self.options());
}

TORCH_IMPL_FUNC(probe_out)(const at::Tensor&) {}

namespace {

void useStructured(const at::Tensor& self, const at::Tensor& other) {
  auto* sum = new Sum();
  sum->meta(self, other, 1);
  auto* product = new MatrixProduct();
  product->meta(self, other);
  (void)product->at::impl::MetaBase::maybe_get_output();
}

void useIterators(at::Tensor& out, const at::Tensor& self) {
  auto iter = at::TensorIteratorConfig()
                  .set_check_mem_overlap(true)
                  .check_all_same_dtype(false)
                  .resize_outputs(false)
                  .promote_inputs_to_common_dtype(true)
                  .enforce_safe_casting_to_output(true)
                  .declare_static_shape(self.sizes())
                  .allow_cpu_scalars(true)
                  .is_reduction(false)
                  .add_output(out)
                  .add_owned_output(out)
                  .add_input(self)
                  .add_const_input(self)
                  .add_owned_const_input(self)
                  .build();
  at::TensorIterator binary = at::TensorIterator::binary_op(out, self, self);
  (void)at::TensorIterator::unary_op(out, self);
  (void)at::TensorIterator::comparison_op(out, self, self);
  (void)at::TensorIterator::nullary_op(out);
  at::TensorIteratorBase& base = binary;
  (void)base.ntensors();
  (void)base.ninputs();
  (void)base.noutputs();
  (void)base.numel();
  (void)base.ndim();
  (void)base.shape();
  (void)base.strides(0);
  (void)base.data_ptr(0);
  (void)base.tensor(0);
  (void)base.dtype(0);
  (void)base.common_dtype();
  (void)base.device(0);
  (void)base.element_size(0);
  (void)base.is_scalar(0);
  (void)base.is_cpu_scalar(1);
  (void)base.scalar_value<float>(1);
  (void)base.is_contiguous();
  (void)base.can_use_32bit_indexing();
  (void)base.input(0);
  (void)base.output(0);
  base.cast_outputs();
  for (auto& part : iter.with_32bit_indexing()) {
    (void)part.operand(0).tensor();
  }
}

void useChecks(const at::Tensor& self, const at::Tensor& other) {
  (void)(at::has_internal_overlap(self) == at::MemOverlap::No);
  (void)(at::get_overlap_status(self, other) == at::MemOverlapStatus::Full);
  at::assert_no_internal_overlap(self);
  at::assert_no_overlap(self, other);
  at::assert_no_partial_overlap(self, other);
  (void)at::infer_size({2}, 2);
  (void)at::infer_size(self.sizes(), other.sizes());
  (void)at::infer_size_dimvector(self.sizes(), other.sizes());
  (void)at::expand_size(self, self.sizes(), "probe");
  (void)at::expand_outplace(self, other);
  (void)at::expand_inplace(self, other);
  (void)at::maybe_wrap_dim(-1, 2);
  std::vector<int64_t> dims{-1};
  at::maybe_wrap_dims(dims, 2);
  (void)at::scalar_to_tensor(1);
  (void)at::native::wrapped_scalar_tensor(1);
  (void)(at::Reduction::Mean == at::Reduction::Sum || at::Reduction::None == 0);
  at::checkAllSameGPU("probe", {{self, "self", 0}, {other, "other", 1}});
}

} // namespace
} // namespace probe
