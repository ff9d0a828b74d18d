// SPDX-License-Identifier: BSD-3-Clause
// Operators that go by a mask, nonzero, and assertions. A result whose size the device must find
// out is the one reason to wait for it here.
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/TensorIterator.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

#include "aten/core/element.h"
#include "aten/core/factory.h"
#include "aten/core/launch.h"
#include "aten/core/operands.h"
#include "aten/core/output.h"
#include "aten/index/masked_ops.h"
#include "kernels/args/indexing.h"
#include "runtime/stream.h"

namespace puone {
namespace {

using at::Tensor;

Stream streamOf(const Tensor& tensor) {
  return getCurrentStream(tensor.device().index());
}

void checkDevice(const char* name, const Tensor& self, const Tensor& other) {
  TORCH_CHECK(
      self.device() == other.device(),
      name,
      ": expected self and mask to be on the same device, but got ",
      self.device(),
      " and ",
      other.device());
}

void checkMask(const char* name, const Tensor& self, const Tensor& mask) {
  TORCH_CHECK(
      mask.scalar_type() == c10::kBool,
      name,
      " only supports boolean masks, but got mask with dtype ",
      mask.scalar_type());
  checkDevice(name, self, mask);
}

// ---- masked_fill ----

Tensor& maskedFill(
    Tensor& self,
    const Tensor& given_mask,
    const Tensor& value,
    const std::optional<c10::Scalar>& scalar) {
  checkMask("masked_fill_", self, given_mask);
  const auto mask = at::expand_inplace(self, given_mask, "masked_fill_");
  if (at::has_internal_overlap(self) == at::MemOverlap::Yes) {
    TORCH_WARN(
        "Use of masked_fill_ on expanded tensors is deprecated. Please clone() the tensor before "
        "performing this operation. This also applies to advanced indexing e.g. tensor[mask] = "
        "scalar");
  }
  at::assert_no_partial_overlap(self, *mask);
  puone_masked_fill_args args{};
  if (scalar) {
    putElement(args.immediate_value, *scalar, self.scalar_type());
    args.immediate = 1;
  }
  at::TensorIteratorConfig config;
  config.set_check_mem_overlap(false).check_all_same_dtype(false).resize_outputs(false);
  config.add_output(self).add_const_input(*mask);
  if (!scalar) config.add_const_input(value);
  const at::TensorIterator iter = config.build();
  if (iter.numel() == 0) return self;
  args.element_size = static_cast<int32_t>(self.itemsize());
  setShape(args, iter);
  setOperand(args.out, iter, 0);
  setOperand(args.mask, iter, 1);
  if (!scalar) setOperand(args.value, iter, 2);
  launchKernel(kernel::masked_fill, args, streamOf(self));
  return self;
}

Tensor& maskedFillScalar(Tensor& self, const Tensor& mask, const c10::Scalar& value) {
  return maskedFill(self, mask, Tensor(), value);
}

Tensor& maskedFillTensor(Tensor& self, const Tensor& mask, const Tensor& value) {
  TORCH_CHECK(
      value.dim() == 0,
      "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
      value.dim(),
      " dimension(s).");
  if (value.device() != self.device()) return maskedFillScalar(self, mask, value.item());
  TORCH_CHECK(
      self.is_complex() || !value.is_complex(),
      "value cannot be converted to type ",
      self.scalar_type(),
      " without overflow");
  return maskedFill(self, mask, value.to(self.scalar_type()), std::nullopt);
}

// ---- what is not zero ----

// How many elements before each chunk of a contiguous tensor are not zero, and in all.
Tensor nonzeroOffsets(const Tensor& self) {
  const int64_t chunks = (self.numel() + PUONE_OFFSETS_CHUNK - 1) / PUONE_OFFSETS_CHUNK;
  Tensor offsets = newResult({chunks + 1}, {}, self.options().dtype(c10::kLong));
  puone_nonzero_offsets_args args{};
  args.n = self.numel();
  args.dtype = kernelDtype(self.scalar_type()).value();
  args.in = inputData(self);
  args.offsets = outputData(offsets);
  launchKernel(kernel::nonzero_offsets, args, streamOf(self));
  return offsets;
}

// Waits for the device.
int64_t total(const Tensor& offsets) {
  return offsets.select(0, offsets.numel() - 1).item<int64_t>();
}

void checkNonzeroOut(const Tensor& self, const Tensor& out) {
  TORCH_CHECK(
      out.scalar_type() == c10::kLong,
      "nonzero: Expected out tensor to have scalar type Long but got scalar type ",
      out.scalar_type());
  TORCH_CHECK(
      self.device() == out.device(),
      "nonzero: expected self and out to be on the same device, but got ",
      self.device(),
      " and ",
      out.device());
  TORCH_CHECK(
      kernelDtype(self.scalar_type()),
      "\"nonzero\" not implemented for '",
      self.scalar_type(),
      "'");
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
}

// The first rows of `out`, as many as it has.
void writeCoordinates(const Tensor& self, const Tensor& offsets, const Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor rows = out.is_contiguous() ? out : newResult(out.sizes(), {}, out.options());
  if (!rows.is_same(out)) rows.copy_(out);
  puone_nonzero_args args{};
  args.n = self.numel();
  args.out_rows = out.size(0);
  args.dtype = kernelDtype(self.scalar_type()).value();
  args.ndim = static_cast<int32_t>(self.dim());
  std::copy(self.sizes().begin(), self.sizes().end(), args.sizes);
  args.in = inputData(self);
  args.offsets = inputData(offsets);
  args.out = outputData(rows);
  launchKernel(kernel::nonzero, args, streamOf(self));
  if (!rows.is_same(out)) out.copy_(rows);
}

Tensor& nonzeroOut(const Tensor& given, Tensor& out) {
  checkNonzeroOut(given, out);
  const Tensor self = given.contiguous();
  if (self.numel() == 0) {
    at::native::resize_output(out, {0, self.dim()});
    return out;
  }
  const Tensor offsets = nonzeroOffsets(self);
  at::native::resize_output(out, {total(offsets), self.dim()});
  writeCoordinates(self, offsets, out);
  return out;
}

Tensor nonzero(const Tensor& self) {
  Tensor out = newResult({0}, {}, self.options().dtype(c10::kLong));
  nonzeroOut(self, out);
  return out;
}

Tensor& nonzeroStaticOut(const Tensor& given, int64_t size, int64_t fill_value, Tensor& out) {
  TORCH_CHECK(size >= 0, "nonzero_static: 'size' must be an non-negative integer");
  checkNonzeroOut(given, out);
  const Tensor self = given.contiguous();
  at::native::resize_output(out, {size, self.dim()});
  if (out.numel() == 0) return out;
  out.fill_(fill_value);
  if (self.numel() != 0) writeCoordinates(self, nonzeroOffsets(self), out);
  return out;
}

Tensor nonzeroStatic(const Tensor& self, int64_t size, int64_t fill_value) {
  Tensor out = newResult({0}, {}, self.options().dtype(c10::kLong));
  nonzeroStaticOut(self, size, fill_value, out);
  return out;
}

// ---- assertions, which fail when the device gets there ----

void assertAsyncMessage(const Tensor& self, c10::string_view message) {
  TORCH_CHECK(self.numel() != 0, "Boolean value of Tensor with no values is ambiguous");
  TORCH_CHECK(self.numel() == 1, "Boolean value of Tensor with more than one value is ambiguous");
  puone_assert_nonzero_args args{};
  args.dtype = kernelDtype(self.scalar_type()).value();
  args.in = inputData(self);
  message.copy(args.message, PUONE_MAX_MESSAGE - 1);
  launchKernel(kernel::assert_nonzero, args, streamOf(self));
}

void assertAsync(const Tensor& self) {
  assertAsyncMessage(self, "Expected Tensor with single nonzero value, but got zero");
}

Tensor functionalAssertAsync(
    const Tensor& self, c10::string_view message, const Tensor& dependency) {
  assertAsyncMessage(self, message);
  return dependency.clone();
}

// ---- packing ----

void launchPacking(
    const kernel::Kernel<puone_packing_args>& kernel,
    const Tensor& mask,
    const Tensor& offsets,
    const Tensor& spread,
    const Tensor& packed) {
  puone_packing_args args{};
  args.n = mask.numel();
  args.packed_size = packed.numel();
  args.element_size = static_cast<int32_t>(spread.itemsize());
  args.mask = inputData(mask);
  args.offsets = inputData(offsets);
  const bool packs = &kernel == &kernel::masked_pack;
  args.spread = packs ? inputData(spread) : outputData(spread);
  args.packed = packs ? outputData(packed) : inputData(packed);
  launchKernel(kernel, args, streamOf(spread));
}

Tensor& maskedSelectOut(const Tensor& self, const Tensor& mask, Tensor& out) {
  TORCH_CHECK(mask.scalar_type() == c10::kBool, "masked_select: expected BoolTensor for mask");
  TORCH_CHECK(
      self.scalar_type() == out.scalar_type(),
      "masked_select(): self and result must have the same scalar type");
  checkDevice("masked_select", self, mask);
  checkDevice("masked_select", self, out);
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
  at::assert_no_overlap(out, mask);
  const auto [wide_mask, wide_self] = at::expand_outplace(mask, self);
  const Tensor where = wide_mask->contiguous();
  if (where.numel() == 0) {
    at::native::resize_output(out, {0});
    return out;
  }
  const Tensor offsets = nonzeroOffsets(where);
  at::native::resize_output(out, {total(offsets)});
  if (out.numel() == 0) return out;
  const Tensor packed = out.is_contiguous() ? out : newResult(out.sizes(), {}, out.options());
  launchPacking(kernel::masked_pack, where, offsets, wide_self->contiguous(), packed);
  if (!packed.is_same(out)) out.copy_(packed);
  return out;
}

Tensor maskedSelect(const Tensor& self, const Tensor& mask) {
  Tensor out = newResult({0}, {}, self.options());
  maskedSelectOut(self, mask, out);
  return out;
}

Tensor& maskedScatter(Tensor& self, const Tensor& given_mask, const Tensor& source) {
  at::assert_no_internal_overlap(self);
  TORCH_CHECK(
      self.scalar_type() == source.scalar_type(),
      "masked_scatter: expected self and source to have same dtypes but got ",
      self.scalar_type(),
      " and ",
      source.scalar_type());
  checkMask("masked_scatter_", self, given_mask);
  checkDevice("masked_scatter_", self, source);
  const auto mask = at::expand_inplace(self, given_mask, "masked_scatter_");
  if (self.numel() == 0) return self;
  const Tensor where = mask->contiguous();
  const Tensor spread = self.contiguous();
  launchPacking(kernel::masked_unpack, where, nonzeroOffsets(where), spread, source.contiguous());
  if (!spread.is_same(self)) self.copy_(spread);
  return self;
}

} // namespace
} // namespace puone

#include "aten/index/masked_registrations.inc"
