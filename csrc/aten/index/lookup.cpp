// SPDX-License-Identifier: BSD-3-Clause
#include "aten/index/lookup.h"

#include <ATen/Context.h>
#include <ATen/TensorIterator.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>

#include <cstring>
#include <limits>

#include "aten/core/element.h"
#include "aten/core/launch.h"
#include "runtime/stream.h"

namespace puone {
namespace {

using at::Tensor;

// What is written goes first: the iterator orders the dimensions for it.
at::TensorIterator iterate(const Lookup& lookup, bool writes_table) {
  at::TensorIteratorConfig config;
  config.set_check_mem_overlap(false).check_all_same_dtype(false).resize_outputs(false);
  const bool has_elements = lookup.elements.defined();
  config.add_output(writes_table ? lookup.table : lookup.elements);
  if (has_elements) config.add_const_input(writes_table ? lookup.elements : lookup.table);
  for (const Tensor& index : lookup.indices) config.add_const_input(index);
  return config.build();
}

// The arguments but for elements and table, for an iterator whose operands from `first` on are the
// indices.
puone_indexing_args arguments(
    const char* name,
    const at::TensorIteratorBase& iter,
    int first,
    c10::IntArrayRef sizes,
    c10::IntArrayRef strides) {
  puone_indexing_args args{};
  std::strncpy(args.name, name, PUONE_MAX_NAME - 1);
  args.element_size = static_cast<int32_t>(iter.element_size(0));
  args.dtype = kernelDtype(iter.dtype(0)).value_or(PUONE_BOOL);
  args.index_dtype = kernelDtype(iter.dtype(first)).value();
  args.index_count = iter.ntensors() - first;
  TORCH_INTERNAL_ASSERT(args.index_count <= PUONE_MAX_INDICES);
  setShape(args, iter);
  for (int k = 0; k < args.index_count; ++k) {
    setOperand(args.index[k], iter, first + k);
    args.index_sizes[k] = sizes[static_cast<size_t>(k)];
    args.index_strides[k] = strides[static_cast<size_t>(k)];
  }
  return args;
}

void launch(
    const kernel::Kernel<puone_indexing_args>& kernel,
    const Lookup& lookup,
    bool writes_table,
    puone_reduction reduction = PUONE_REDUCE_SUM) {
  const at::TensorIterator iter = iterate(lookup, writes_table);
  if (iter.numel() == 0) return;
  const bool has_elements = lookup.elements.defined();
  c10::SmallVector<int64_t, 2> strides = lookup.strides;
  for (int64_t& stride : strides) stride *= static_cast<int64_t>(lookup.table.itemsize());
  puone_indexing_args args =
      arguments(lookup.name, iter, has_elements ? 2 : 1, lookup.sizes, strides);
  args.reduction = reduction;
  // As torch.use_deterministic_algorithms() documents it.
  args.any_order = at::globalContext().deterministicAlgorithms() ? 0 : 1;
  args.wraps = lookup.wraps;
  setOperand(args.table, iter, writes_table ? 0 : 1);
  if (has_elements) {
    setOperand(args.elements, iter, writes_table ? 1 : 0);
  } else {
    args.immediate = 1;
    putElement(args.value, lookup.value.value(), lookup.table.scalar_type());
  }
  launchKernel(kernel, args, getCurrentStream(lookup.table.device().index()));
}

// The tensor with another size along `dim` and stride 0 there.
Tensor broadcastAlong(const Tensor& table, int64_t dim, c10::IntArrayRef sizes) {
  c10::DimVector strides(table.strides());
  strides[static_cast<size_t>(dim)] = 0;
  return table.as_strided(sizes, strides);
}

} // namespace

void lookUp(const Lookup& lookup) {
  launch(kernel::index_get, lookup, false);
}

void lookUp(
    const char* name,
    const at::TensorIteratorBase& iter,
    c10::IntArrayRef sizes,
    c10::IntArrayRef strides) {
  if (iter.numel() == 0) return;
  puone_indexing_args args = arguments(name, iter, 2, sizes, strides);
  args.wraps = 1;
  setOperand(args.elements, iter, 0);
  setOperand(args.table, iter, 1);
  launchKernel(kernel::index_get, args, getCurrentStream(iter.device(0).index()));
}

void scatter(const Lookup& lookup) {
  launch(kernel::index_put, lookup, true);
}

void reduce(const Lookup& lookup, puone_reduction reduction) {
  launch(kernel::index_reduce, lookup, true, reduction);
}

namespace {

// The identity element of the reduction.
c10::Scalar identity(std::string_view reduction, c10::ScalarType type) {
  if (reduction == "prod") return 1;
  if (reduction != "amax" && reduction != "amin") return 0;
  const bool top = reduction == "amin";
  if (type == c10::ScalarType::Bool) return top;
  if (c10::isFloatingType(type)) {
    const double infinity = std::numeric_limits<double>::infinity();
    return top ? infinity : -infinity;
  }
  switch (type) {
    case c10::ScalarType::Byte:
      return top ? 255 : 0;
    case c10::ScalarType::Char:
      return top ? 127 : -128;
    case c10::ScalarType::Short:
      return top ? 32767 : -32768;
    case c10::ScalarType::Int:
      return top ? std::numeric_limits<int32_t>::max() : std::numeric_limits<int32_t>::min();
    default:
      return top ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
  }
}

puone_reduction reductionOf(std::string_view reduction) {
  if (reduction == "sum" || reduction == "mean") return PUONE_REDUCE_SUM;
  if (reduction == "prod") return PUONE_REDUCE_PRODUCT;
  if (reduction == "amax") return PUONE_REDUCE_MAXIMUM;
  TORCH_CHECK(
      reduction == "amin",
      "reduce argument must be either sum, prod, mean, amax or amin, got ",
      reduction,
      ".");
  return PUONE_REDUCE_MINIMUM;
}

// Divides the sums by the number of elements in them.
void divideByCounts(bool include_self, const Tensor& sums, LookupOf lookup_of) {
  Tensor counts = include_self ? at::ones_like(sums) : at::zeros_like(sums);
  Lookup lookup = lookup_of(counts);
  lookup.elements = Tensor();
  lookup.value = 1;
  reduce(lookup, PUONE_REDUCE_SUM);
  counts.masked_fill_(counts.eq(0), 1);
  if (c10::isIntegralType(sums.scalar_type(), true)) {
    sums.div_(counts, "floor");
  } else {
    sums.div_(counts);
  }
}

} // namespace

void reduceAs(
    std::string_view reduction, bool include_self, const Tensor& table, LookupOf lookup_of) {
  Lookup lookup = lookup_of(table);
  const puone_reduction kind = reductionOf(reduction);
  requireType(kernel::index_reduce, table.scalar_type()); // before anything is written
  if (!include_self) {
    Lookup initial = lookup;
    initial.elements = Tensor();
    initial.value = identity(reduction, table.scalar_type());
    scatter(initial);
  }
  reduce(lookup, kind);
  if (reduction == "mean") divideByCounts(include_self, table, lookup_of);
}

bool isReducible(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::UInt16:
    case c10::ScalarType::UInt32:
    case c10::ScalarType::ComplexHalf:
      return false;
    default:
      return isComputable(type);
  }
}

Tensor atLeast1d(const Tensor& tensor) {
  return tensor.dim() == 0 ? tensor.unsqueeze(0) : tensor;
}

Lookup alongDimension(
    const char* name,
    const Tensor& table_or_scalar,
    int64_t dim,
    const Tensor& index_or_scalar,
    const Tensor& elements_or_scalar) {
  const Tensor table = atLeast1d(table_or_scalar);
  const Tensor index = atLeast1d(index_or_scalar);
  Lookup lookup{name, broadcastAlong(table, dim, index.sizes()), {}, {index}, {}, {}};
  if (elements_or_scalar.defined()) {
    const Tensor elements = atLeast1d(elements_or_scalar);
    lookup.elements = elements.as_strided(index.sizes(), elements.strides());
  }
  lookup.sizes = {table.size(dim)};
  lookup.strides = {table.stride(dim)};
  return lookup;
}

Lookup ofSlices(
    const char* name,
    const Tensor& table_or_scalar,
    int64_t dim,
    const Tensor& index,
    const Tensor& elements) {
  const Tensor table = atLeast1d(table_or_scalar);
  const auto d = static_cast<size_t>(dim);
  c10::DimVector sizes(table.sizes());
  sizes[d] = index.numel();
  c10::DimVector index_sizes(sizes.size(), 1);
  index_sizes[d] = index.numel();
  c10::DimVector index_strides(sizes.size(), 0);
  index_strides[d] = index.dim() == 0 ? 1 : index.stride(0);
  Lookup lookup{name, broadcastAlong(table, dim, sizes), {}, {}, {}, {}};
  if (elements.defined()) lookup.elements = atLeast1d(elements);
  lookup.indices = {index.as_strided(index_sizes, index_strides)};
  lookup.sizes = {table.size(dim)};
  lookup.strides = {table.stride(dim)};
  return lookup;
}

} // namespace puone
