// SPDX-License-Identifier: BSD-3-Clause
// cat. What is contiguous is joined by launches of many parts each; the rest is copied part by
// part.
#include <ATen/MemoryOverlap.h>
#include <ATen/core/IListRef.h>
#include <torch/library.h>

#include "aten/core/launch.h"
#include "aten/core/output.h"
#include "aten/core/structured.h"
#include "aten/shape/cat_ops.h"
#include "kernels/args/shape.h"
#include "runtime/stream.h"

namespace puone {
namespace {

using at::Tensor;

// Joins contiguous tensors of one dtype, as many as a launch takes at a time.
class Joiner {
 public:
  Joiner(const Tensor& out, int64_t dim) : out_(out), dim_(dim) {
    args_.out = outputData(out);
    args_.out_row_bytes = rowBytes(out);
    args_.rows = c10::multiply_integers(out.sizes().slice(0, static_cast<size_t>(dim)));
  }

  void add(const Tensor& part) {
    if (args_.count == PUONE_MAX_PARTS) flush();
    const int64_t bytes = rowBytes(part);
    args_.parts[args_.count++] = {inputData(part), offset_, bytes};
    offset_ += bytes;
  }

  void flush() {
    if (args_.count == 0) return;
    launchKernel(kernel::cat, args_, getCurrentStream(out_.device().index()));
    args_.count = 0;
  }

 private:
  int64_t rowBytes(const Tensor& tensor) const {
    return c10::multiply_integers(tensor.sizes().slice(static_cast<size_t>(dim_))) *
           static_cast<int64_t>(tensor.itemsize());
  }

  const Tensor& out_;
  int64_t dim_;
  int64_t offset_ = 0;
  puone_cat_args args_{};
};

struct Cat : at::meta::structured_cat {
  static bool supports(const at::ITensorListRef& /*tensors*/, const auto&... /*others*/) {
    return true;
  }

  void impl(
      const auto& precomputed,
      const at::ITensorListRef& tensors,
      int64_t /*dim*/,
      const Tensor& out) {
    if (out.numel() == 0) return;
    if (precomputed.all_contiguous && precomputed.all_same_dtype && out.is_contiguous()) {
      Joiner joiner(out, precomputed.dim);
      for (const Tensor& tensor : tensors) {
        if (tensor.numel() != 0) joiner.add(tensor);
      }
      joiner.flush();
      return;
    }
    int64_t start = 0;
    for (const Tensor& tensor : tensors) {
      if (tensor.numel() == 0) continue; // also torch's legacy: [0] fits everywhere
      const int64_t length = tensor.size(precomputed.dim);
      out.narrow(precomputed.dim, start, length).copy_(tensor);
      start += length;
    }
  }
};

} // namespace
} // namespace puone

#include "aten/shape/cat_registrations.inc"
