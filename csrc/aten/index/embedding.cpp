// SPDX-License-Identifier: BSD-3-Clause
// Embeddings and bags of them. The plain lookup is index_select; here is its way back.
#include <ATen/OpMathType.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include "aten/core/factory.h"
#include "aten/core/launch.h"
#include "aten/core/output.h"
#include "aten/index/embedding_ops.h"
#include "aten/index/lookup.h"
#include "kernels/args/embedding.h"
#include "runtime/stream.h"

namespace puone {
namespace {

using at::Tensor;

void checkIndices(const char* name, const char* argument, const Tensor& indices) {
  TORCH_CHECK(
      indices.scalar_type() == c10::kLong || indices.scalar_type() == c10::kInt,
      name,
      ": expected '",
      argument,
      "' to have scalar type Long or Int, but got ",
      indices.scalar_type());
}

// ---- the gradient of a table ----

// How often each index occurs, as a column to divide gradients by.
Tensor frequencies(const Tensor& indices, int64_t rows, const Tensor& like) {
  const Tensor counts = at::zeros({rows}, like.options());
  Lookup lookup = ofSlices("embedding_dense_backward", counts, 0, indices, Tensor());
  lookup.value = 1;
  reduce(lookup, PUONE_REDUCE_SUM);
  return counts.index_select(0, indices).unsqueeze(1);
}

// Adds a row of gradients to the table's row of each index.
Tensor tableGradient(
    const char* name,
    Tensor grad,
    const Tensor& indices,
    int64_t rows,
    int64_t padding,
    bool scale_by_frequency) {
  const Tensor result = at::zeros({rows, grad.size(1)}, grad.options());
  if (indices.numel() == 0) return result;
  if (scale_by_frequency) grad = grad.div(frequencies(indices, rows, grad));
  reduce(ofSlices(name, result, 0, indices, grad), PUONE_REDUCE_SUM);
  if (padding >= 0 && padding < rows) result.select(0, padding).zero_();
  return result;
}

Tensor embeddingDenseBackward(
    const Tensor& grad,
    const Tensor& indices,
    int64_t num_weights,
    int64_t padding_idx,
    bool scale_grad_by_freq) {
  checkIndices("embedding_dense_backward", "indices", indices);
  return tableGradient(
      "embedding_dense_backward",
      grad.reshape({indices.numel(), grad.size(-1)}),
      indices.reshape({-1}),
      num_weights,
      padding_idx,
      scale_grad_by_freq);
}

// ---- bags ----

using BagResult = std::tuple<Tensor, Tensor, Tensor, Tensor>;

void checkBag(
    const Tensor& weight,
    const Tensor& indices,
    const Tensor& offsets,
    int64_t mode,
    const Tensor& scales,
    bool include_last_offset) {
  checkIndices("embedding_bag", "indices", indices);
  checkIndices("embedding_bag", "offsets", offsets);
  TORCH_CHECK(weight.dim() == 2, "embedding_bag: weight has to be a 2D Tensor");
  TORCH_CHECK(
      c10::isFloatingType(weight.scalar_type()) && kernelDtype(weight.scalar_type()),
      "embedding_bag: expected weight to have a floating-point scalar type, but got ",
      weight.scalar_type());
  for (const Tensor* tensor : {&indices, &offsets, &scales}) {
    TORCH_CHECK(
        !tensor->defined() || tensor->device() == weight.device(),
        "Expected all tensors to be on the same device, but got ",
        weight.device(),
        " and ",
        tensor->device(),
        " in embedding_bag");
  }
  TORCH_CHECK(
      !include_last_offset || offsets.size(0) >= 1,
      "include_last_offset: number of offset should be at least 1");
  if (!scales.defined()) return;
  TORCH_CHECK(
      mode == PUONE_BAG_SUM, "embedding_bag: per_sample_weights only supported with mode='sum'");
  TORCH_CHECK(
      scales.scalar_type() == weight.scalar_type() && scales.sizes() == indices.sizes(),
      "embedding_bag: per_sample_weights must be like weight in dtype and like indices in shape");
}

BagResult embeddingBag(
    const Tensor& weight,
    const Tensor& given_indices,
    const Tensor& given_offsets,
    bool /*scale_grad_by_freq*/,
    int64_t mode,
    bool /*sparse*/,
    const std::optional<Tensor>& per_sample_weights,
    bool include_last_offset,
    int64_t padding_idx) {
  const Tensor given_scales = per_sample_weights.value_or(Tensor());
  checkBag(weight, given_indices, given_offsets, mode, given_scales, include_last_offset);
  const auto index_type =
      c10::promoteTypes(given_indices.scalar_type(), given_offsets.scalar_type());
  const Tensor indices = given_indices.to(index_type).contiguous();
  const Tensor offsets = given_offsets.to(index_type).contiguous();
  const Tensor scales = given_scales.defined() ? given_scales.contiguous() : given_scales;
  puone_embedding_bag_args args{};
  args.bags = offsets.size(0) - (include_last_offset ? 1 : 0);
  args.columns = weight.size(1);
  args.rows = weight.size(0);
  args.index_count = indices.size(0);
  args.offset_count = offsets.size(0);
  args.padding = padding_idx < 0 ? -1 : padding_idx;
  args.mode = static_cast<int32_t>(mode);
  const auto like_indices = indices.options();
  Tensor out = newResult({args.bags, args.columns}, {}, weight.options());
  Tensor offset2bag = at::zeros({args.index_count}, like_indices);
  Tensor bag_size = newResult({args.bags}, {}, like_indices);
  const int64_t max_rows = mode == PUONE_BAG_MAX ? args.bags : 0;
  Tensor max_indices = newResult({max_rows, args.columns}, {}, like_indices);
  if (args.bags != 0) {
    args.dtype = *kernelDtype(weight.scalar_type());
    args.index_dtype = *kernelDtype(index_type);
    for (int d = 0; d < 2; ++d) {
      args.weight_strides[d] = weight.stride(d) * static_cast<int64_t>(weight.itemsize());
    }
    args.weight = inputData(weight);
    args.indices = inputData(indices);
    args.offsets = inputData(offsets);
    args.scales = inputData(scales);
    args.out = outputData(out);
    args.offset2bag = outputData(offset2bag);
    args.bag_size = outputData(bag_size);
    args.max_indices = max_rows != 0 ? outputData(max_indices) : nullptr;
    launchKernel(kernel::embedding_bag, args, getCurrentStream(weight.device().index()));
  }
  return {out, offset2bag, bag_size, max_indices};
}

// What a backward pass of bags is given: a gradient of rows as long as those of the table, and a
// bag for each index.
void checkOfBags(
    const Tensor& grad, int64_t columns, const Tensor& indices, const Tensor& offset2bag) {
  TORCH_CHECK(
      grad.dim() == 2 && grad.size(1) == columns && indices.dim() == 1 &&
          offset2bag.sizes() == indices.sizes(),
      "Expected a gradient of rows of ",
      columns,
      " elements and a bag for each index, but got a gradient, indices and bags of the sizes ",
      grad.sizes(),
      ", ",
      indices.sizes(),
      " and ",
      offset2bag.sizes());
}

// A column with the value that belongs to the bag of each index.
Tensor ofBags(const Tensor& values, const Tensor& offset2bag, c10::ScalarType type) {
  return values.index_select(0, offset2bag).to(type).unsqueeze(1);
}

Tensor embeddingBagDenseBackward(
    const Tensor& grad,
    const Tensor& indices,
    const Tensor& offset2bag,
    const Tensor& bag_size,
    const Tensor& maximum_indices,
    int64_t num_weights,
    bool scale_grad_by_freq,
    int64_t mode,
    const std::optional<Tensor>& per_sample_weights,
    int64_t padding_idx) {
  const char* name = "_embedding_bag_dense_backward";
  if (mode == PUONE_BAG_MAX) {
    const Tensor result = at::zeros({num_weights, grad.size(1)}, grad.options());
    if (grad.numel() == 0) return result;
    const Tensor found = grad.masked_fill(bag_size.eq(0).unsqueeze(1), 0);
    reduce(alongDimension(name, result, 0, maximum_indices, found), PUONE_REDUCE_SUM);
    return result;
  }
  checkOfBags(grad, grad.size(-1), indices, offset2bag);
  Tensor rows = grad.index_select(0, offset2bag);
  if (mode == PUONE_BAG_MEAN) rows = rows.div(ofBags(bag_size, offset2bag, grad.scalar_type()));
  if (per_sample_weights && per_sample_weights->defined()) {
    rows = rows.mul(per_sample_weights->unsqueeze(1));
  }
  return tableGradient(name, rows, indices, num_weights, padding_idx, scale_grad_by_freq);
}

Tensor embeddingBagScalesBackward(
    const Tensor& grad,
    const Tensor& weight,
    const Tensor& indices,
    const Tensor& /*offsets*/,
    const Tensor& offset2bag,
    int64_t mode,
    int64_t padding_idx) {
  TORCH_CHECK(
      mode == PUONE_BAG_SUM,
      "embedding_bag_backward: per_sample_weights only supported for mode='sum'");
  TORCH_CHECK(weight.dim() == 2, "embedding_bag_backward: the table must have two dimensions");
  checkOfBags(grad, weight.size(1), indices, offset2bag);
  const auto type = at::toOpMathType(grad.scalar_type());
  const Tensor rows = weight.index_select(0, indices).to(type);
  const Tensor products = grad.index_select(0, offset2bag).to(type).mul(rows);
  const Tensor result = products.sum(1).to(grad.scalar_type());
  return padding_idx < 0 ? result : result.masked_fill(indices.eq(padding_idx), 0);
}

// ---- renormalisation ----

// Scales the rows that the indices name down to a norm. A row that is named twice is written twice,
// with the same values.
Tensor& embeddingRenorm(Tensor& self, const Tensor& indices, double max_norm, double norm_type) {
  checkIndices("embedding_renorm_", "indices", indices);
  TORCH_CHECK(
      self.dim() == 2, "embedding_renorm_: expected a 2D Tensor, but got ", self.dim(), "D");
  if (indices.numel() == 0) return self;
  const Tensor flat = indices.reshape({-1});
  const Tensor rows = self.index_select(0, flat);
  const Tensor norms = rows.norm(norm_type, {1}, /*keepdim=*/true);
  const Tensor scales = norms.add(1e-7).reciprocal().mul(max_norm);
  return self.index_copy_(0, flat, rows.where(norms.le(max_norm), rows.mul(scales)));
}

} // namespace
} // namespace puone

#include "aten/index/embedding_registrations.inc"
