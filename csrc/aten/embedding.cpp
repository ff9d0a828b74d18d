// SPDX-License-Identifier: BSD-3-Clause
// Embeddings. The lookup itself is index_select; here is what it needs on the way back.
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include "aten/lookup.h"

namespace puone {
namespace {

using at::Tensor;

// How often each row occurs, as a number by which to divide `like`.
Tensor frequencies(const Tensor& indices, int64_t rows, const Tensor& like) {
  Tensor counts = at::zeros({rows}, like.options());
  Lookup lookup = ofSlices("embedding_dense_backward", counts, 0, indices, Tensor());
  lookup.value = 1;
  reduce(lookup, PUONE_REDUCE_SUM);
  return counts.index_select(0, indices);
}

Tensor embeddingDenseBackward(
    const Tensor& grad_output,
    const Tensor& given_indices,
    int64_t num_weights,
    int64_t padding_idx,
    bool scale_grad_by_freq) {
  TORCH_CHECK(
      given_indices.scalar_type() == c10::kLong || given_indices.scalar_type() == c10::kInt,
      "embedding_dense_backward: Expected tensor for argument #2 'indices' to have scalar type "
      "Long or Int, but got ",
      given_indices.scalar_type());
  const int64_t columns = grad_output.size(-1);
  const Tensor indices = given_indices.reshape({-1});
  Tensor grad = grad_output.reshape({indices.numel(), columns});
  Tensor grad_weight = at::zeros({num_weights, columns}, grad_output.options());
  if (indices.numel() == 0) return grad_weight;
  if (scale_grad_by_freq) grad = grad.div(frequencies(indices, num_weights, grad).unsqueeze(1));
  reduce(ofSlices("embedding_dense_backward", grad_weight, 0, indices, grad), PUONE_REDUCE_SUM);
  if (padding_idx >= 0 && padding_idx < num_weights) grad_weight.select(0, padding_idx).zero_();
  return grad_weight;
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("embedding_dense_backward", TORCH_FN(embeddingDenseBackward));
}

} // namespace puone
