// SPDX-License-Identifier: BSD-3-Clause
// Operators that read a tensor at indices, or write there.
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/IndexingUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorAdvancedIndexingUtils.h>
#include <torch/library.h>

#include <algorithm>

#include "aten/core/output.h"
#include "aten/core/structured.h"
#include "aten/index/indexing_ops.h"
#include "aten/index/lookup.h"

namespace puone {
namespace {

using at::Tensor;
using OptionalTensors = c10::List<std::optional<Tensor>>;

// ---- one index per slice: index_select, index_add, index_copy, index_reduce, index_fill ----

struct IndexAdd : at::meta::structured_index_add {
  static bool supports(const Tensor& self, const auto&... /*others*/) {
    return isReducible(self.scalar_type());
  }
  void impl(
      const auto& precomputed,
      const Tensor& self,
      int64_t /*dim*/,
      const Tensor& index,
      const Tensor& source,
      const c10::Scalar& alpha,
      const Tensor& out) {
    startAsCopy(out, self);
    if (index.numel() == 0) return;
    const Tensor scaled = alpha.equal(1) ? source : source.mul(alpha);
    reduce(ofSlices("index_add", out, precomputed.dim, index, scaled), PUONE_REDUCE_SUM);
  }
};

struct IndexCopy : at::meta::structured_index_copy {
  static bool supports(const Tensor& /*self*/, const auto&... /*others*/) {
    return true;
  }
  void impl(
      const auto& precomputed,
      const Tensor& self,
      int64_t /*dim*/,
      const Tensor& index,
      const Tensor& source,
      const Tensor& out) {
    startAsCopy(out, self);
    if (index.numel() != 0) scatter(ofSlices("index_copy_", out, precomputed.dim, index, source));
  }
};

struct IndexReduce : at::meta::structured_index_reduce {
  static bool supports(const Tensor& self, const auto&... /*others*/) {
    return isReducible(self.scalar_type());
  }
  void impl(
      const auto& precomputed,
      const Tensor& self,
      int64_t /*dim*/,
      const Tensor& index,
      const Tensor& source,
      std::string_view reduction,
      bool include_self,
      const Tensor& out) {
    startAsCopy(out, self);
    if (index.numel() == 0) return;
    reduceAs(reduction, include_self, out, [&](const Tensor& table) {
      return ofSlices("index_reduce", table, precomputed.dim, index, source);
    });
  }
};

void checkSameDevice(const char* name, const Tensor& self, const Tensor& index) {
  TORCH_CHECK(
      self.device() == index.device(),
      "Expected all tensors to be on the same device, but got index is on ",
      index.device(),
      ", different from other tensors on ",
      self.device(),
      " in ",
      name);
}

Tensor& indexSelectOut(const Tensor& self, int64_t dim, const Tensor& index, Tensor& out) {
  dim = at::maybe_wrap_dim(dim, self.dim());
  TORCH_CHECK_INDEX(index.dim() <= 1, "index_select(): Index is supposed to be a vector");
  TORCH_CHECK(
      index.scalar_type() == c10::kLong || index.scalar_type() == c10::kInt,
      "index_select(): Expected dtype int32 or int64 for index");
  checkSameDevice("index_select", self, index);
  TORCH_CHECK(
      self.scalar_type() == out.scalar_type(),
      "index_select(): self and result must have the same scalar type");
  TORCH_CHECK(
      self.dim() != 0 || index.numel() == 1,
      "index_select(): Index to scalar can have only 1 value, got ",
      index.numel(),
      " value(s)");
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
  at::assert_no_overlap(out, index);
  c10::DimVector sizes(self.sizes());
  if (!sizes.empty()) sizes[static_cast<size_t>(dim)] = index.numel();
  at::native::resize_output(out, sizes);
  if (out.numel() != 0) lookUp(ofSlices("index_select", self, dim, index, out));
  return out;
}

Tensor indexSelect(const Tensor& self, int64_t dim, const Tensor& index) {
  Tensor out = newResult({0}, {}, self.options());
  indexSelectOut(self, dim, index, out);
  return out;
}

Tensor& fillSlices(
    Tensor& self,
    int64_t dim,
    const Tensor& index,
    const Tensor& elements,
    const std::optional<c10::Scalar>& value) {
  TORCH_CHECK_INDEX(
      index.scalar_type() == c10::kLong, "index_fill_(): Expected dtype int64 for index.");
  TORCH_CHECK(index.dim() <= 1, "index_fill_(): Index has to be a vector or a scalar");
  checkSameDevice("index_fill_", self, index);
  at::assert_no_overlap(self, index);
  if (at::has_internal_overlap(self) == at::MemOverlap::Yes) {
    TORCH_WARN(
        "Use of index_fill_ on expanded tensors is deprecated. Please clone() the tensor before "
        "performing this operation. This also applies to advanced indexing e.g. tensor[mask] = "
        "scalar");
  }
  if (self.numel() == 0 || index.numel() == 0) return self;
  Lookup lookup =
      ofSlices("index_fill_", self, at::maybe_wrap_dim(dim, self.dim()), index, elements);
  lookup.value = value;
  lookup.wraps = true;
  scatter(lookup);
  return self;
}

Tensor& indexFillScalar(Tensor& self, int64_t dim, const Tensor& index, const c10::Scalar& value) {
  TORCH_CHECK(
      self.is_complex() || !value.isComplex(),
      "index_fill_(): Converting complex Scalar to non-complex type is not supported");
  return fillSlices(self, dim, index, Tensor(), value);
}

Tensor& indexFillTensor(Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  TORCH_CHECK(
      value.dim() == 0,
      "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
      value.dim(),
      " dimension(s).");
  if (value.is_cpu()) return indexFillScalar(self, dim, index, value.item());
  TORCH_CHECK(
      self.is_complex() || !value.is_complex(),
      "index_fill_(): Converting complex Scalar to non-complex type is not supported");
  return fillSlices(self, dim, index, value.to(self.scalar_type()), std::nullopt);
}

// ---- any number of indices: index, index_put ----

// The indices of a call, masks counted as the indices they stand for.
int64_t indexCount(const OptionalTensors& indices) {
  int64_t count = 0;
  for (const std::optional<Tensor>& index : indices) {
    if (!index || !index->defined()) continue;
    const bool mask = index->scalar_type() == c10::kBool || index->scalar_type() == c10::kByte;
    count += mask ? index->dim() : 1;
  }
  return count;
}

struct Index : at::meta::structured_index_Tensor {
  static bool supports(const Tensor& /*self*/, const OptionalTensors& indices) {
    return indexCount(indices) <= PUONE_MAX_INDICES;
  }
  // The meta has made this an iterator over the result, the table and the indices.
  void impl(
      const auto& precomputed,
      const Tensor& /*self*/,
      at::IOptTensorListRef /*indices*/,
      const Tensor& /*out*/) {
    lookUp("index", *this, precomputed.sizes, precomputed.strides);
  }
};

// The table with the dimensions that are indexed replaced by those of the indices.
Lookup advanced(Tensor self, const OptionalTensors& given) {
  at::native::checkIndexTensorTypes(given, /*allow_int=*/true);
  auto indices = at::native::expandTensors(self, given, /*ensure_same_device=*/true);
  indices = at::expand_outplace(indices);
  indices.resize(static_cast<size_t>(self.dim()));
  if (!at::native::hasContiguousSubspace(indices)) {
    std::tie(self, indices) = at::native::transposeToFront(self, indices);
  }
  Lookup lookup{"index_put_", {}, {}, {}, {}, {}, /*wraps=*/true};
  c10::DimVector sizes, strides;
  size_t before = 0;
  for (size_t d = 0; d < indices.size(); ++d) {
    const auto dim = static_cast<int64_t>(d);
    if (!indices[d].defined()) {
      sizes.push_back(self.size(dim));
      strides.push_back(self.stride(dim));
      continue;
    }
    if (lookup.indices.empty()) {
      before = d;
      sizes.append(indices[d].sizes().begin(), indices[d].sizes().end());
      strides.append(indices[d].dim(), 0);
    }
    lookup.indices.push_back(indices[d].to(c10::kLong));
    lookup.sizes.push_back(self.size(dim));
    lookup.strides.push_back(self.stride(dim));
  }
  TORCH_CHECK(!lookup.indices.empty(), "index_put_: at least one index must be a tensor");
  const Tensor& first = lookup.indices.front();
  TORCH_CHECK_INDEX(
      first.numel() == 0 ||
          std::find(lookup.sizes.begin(), lookup.sizes.end(), 0) == lookup.sizes.end(),
      "index is out of bounds for dimension with size 0");
  const size_t after = sizes.size() - before - static_cast<size_t>(first.dim());
  for (Tensor& index : lookup.indices) {
    c10::DimVector shape(index.sizes()), steps(index.strides());
    shape.append(after, 1);
    steps.append(after, 0);
    index = index.as_strided(shape, steps);
  }
  lookup.table = self.as_strided(sizes, strides);
  return lookup;
}

Tensor& indexPut(
    Tensor& self,
    const OptionalTensors& indices,
    const Tensor& given_values,
    bool accumulate,
    bool /*unsafe*/) {
  TORCH_CHECK_INDEX(
      indices.size() <= static_cast<size_t>(self.dim()),
      "too many indices for tensor of dimension ",
      self.dim(),
      " (got ",
      indices.size(),
      ")");
  if (indexCount(indices) > PUONE_MAX_INDICES || (accumulate && !isReducible(self.scalar_type()))) {
    return fallBack<at::_ops::_index_put_impl_>(self, indices, given_values, accumulate, false);
  }
  if (at::has_internal_overlap(self) == at::MemOverlap::Yes) {
    TORCH_WARN(
        "Use of index_put_ on expanded tensors is deprecated. Please clone() the tensor before "
        "performing this operation. This also applies to advanced indexing e.g. tensor[indices] = "
        "tensor");
  }
  if (!accumulate) {
    const auto [is_fill, mask] = at::native::canDispatchToMaskedFill(self, indices, given_values);
    if (is_fill) return self.masked_fill_(mask, given_values.item());
  }
  const bool scalar = given_values.device() != self.device() && given_values.dim() == 0;
  const Tensor values = scalar ? given_values.to(self.device()) : given_values;
  TORCH_CHECK(
      values.device() == self.device(),
      "expected device ",
      self.device(),
      " but got device ",
      values.device(),
      " for value tensor");
  at::assert_no_overlap(self, values);
  for (const std::optional<Tensor>& index : indices) {
    if (index && index->defined()) at::assert_no_overlap(self, *index);
  }
  TORCH_CHECK_INDEX(
      self.scalar_type() == values.scalar_type(),
      "Index put requires the source and destination dtypes match, got ",
      self.scalar_type(),
      " for the destination and ",
      values.scalar_type(),
      " for the source.");
  Lookup lookup = advanced(self, indices);
  TORCH_CHECK(
      at::is_expandable_to(values.sizes(), lookup.table.sizes()),
      "shape mismatch: value tensor of shape ",
      values.sizes(),
      " cannot be broadcast to indexing result of shape ",
      lookup.table.sizes());
  lookup.elements = values;
  if (accumulate) {
    reduce(lookup, PUONE_REDUCE_SUM);
  } else {
    scatter(lookup);
  }
  return self;
}

// ---- into the flat tensor: take, put ----

Lookup flatLookup(
    const char* name, const Tensor& table, const Tensor& index, const Tensor& elements) {
  c10::DimVector zero_strides(static_cast<size_t>(index.dim()), 0);
  Lookup lookup{name, table.as_strided(index.sizes(), zero_strides), elements, {index}, {}, {}};
  lookup.sizes = {table.numel()};
  lookup.strides = {1};
  lookup.wraps = true;
  return lookup;
}

void checkFlat(const char* name, const Tensor& self, const Tensor& index, const Tensor& other) {
  TORCH_CHECK(
      index.scalar_type() == c10::kLong,
      name,
      "(): Expected a long tensor for index, but got ",
      index.scalar_type());
  TORCH_CHECK(
      self.scalar_type() == other.scalar_type(),
      name,
      "(): self and ",
      name == std::string_view("take") ? "out" : "source",
      " expected to have the same dtype, but got ",
      self.scalar_type(),
      " and ",
      other.scalar_type());
  for (const Tensor* tensor : {&index, &other}) {
    TORCH_CHECK(
        tensor->device() == self.device(),
        name,
        "(): Expected all tensors to be on the same device, but got ",
        self.device(),
        " and ",
        tensor->device());
  }
}

Tensor& takeOut(const Tensor& self, const Tensor& index, Tensor& out) {
  checkFlat("take", self, index, out);
  TORCH_CHECK_INDEX(
      self.numel() != 0 || index.numel() == 0, "take(): tried to take from an empty tensor");
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
  at::assert_no_overlap(out, index);
  at::native::resize_output(out, index.sizes());
  if (out.numel() != 0) lookUp(flatLookup("take", self.contiguous(), index, out));
  return out;
}

Tensor take(const Tensor& self, const Tensor& index) {
  Tensor out = newResult(index.sizes(), {}, self.options());
  takeOut(self, index, out);
  return out;
}

Tensor& putFlat(Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
  checkFlat("put_", self, index, source);
  TORCH_CHECK_INDEX(
      index.numel() == source.numel(),
      "put_(): Expected source and index to have the same number of elements, but got "
      "source.numel() = ",
      source.numel(),
      ", index.numel() = ",
      index.numel());
  TORCH_CHECK_INDEX(
      self.numel() != 0 || index.numel() == 0,
      "put_(): Tried to put elements into an empty tensor");
  if (accumulate && !isReducible(self.scalar_type())) {
    return fallBack<at::_ops::put_>(self, index, source, accumulate);
  }
  at::assert_no_internal_overlap(self);
  at::assert_no_overlap(self, index);
  at::assert_no_overlap(self, source);
  if (index.numel() == 0) return self;
  const Tensor flat = self.contiguous();
  const Lookup lookup = flatLookup("put_", flat, index, source.reshape(index.sizes()));
  if (accumulate) {
    reduce(lookup, PUONE_REDUCE_SUM);
  } else {
    scatter(lookup);
  }
  if (!flat.is_same(self)) self.copy_(flat);
  return self;
}

} // namespace
} // namespace puone

#include "aten/index/indexing_registrations.inc"
