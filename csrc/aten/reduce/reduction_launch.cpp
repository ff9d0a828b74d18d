// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/native/ReduceOpsUtils.h>

#include "aten/core/elementwise.h"
#include "aten/core/launch.h"
#include "aten/core/operands.h"
#include "aten/core/output.h"
#include "aten/reduce/reduction.h"
#include "kernels/args/reduction.h"
#include "runtime/stream.h"

namespace puone {
namespace {

// The strides of an output along the input's dimensions.
void setOutput(
    puone_reduce_args& args,
    int index,
    const at::Tensor& out,
    const at::Tensor& self,
    DimMask reduced) {
  if (!out.defined()) return;
  args.out_dtypes[index] = *kernelDtype(out.scalar_type());
  args.outs[index].data = out.mutable_data_ptr();
  const bool keeps = out.dim() == self.dim();
  int64_t at = 0;
  for (int64_t d = 0; d < self.dim(); ++d) {
    const int64_t stride = reduced[d] ? 0 : out.stride(at) * static_cast<int64_t>(out.itemsize());
    if (keeps || !reduced[d]) ++at;
    args.outs[index].strides[self.dim() - 1 - d] = stride;
  }
}

} // namespace

DimMask dimMask(at::OptionalIntArrayRef dims, const at::Tensor& self, bool may_be_empty) {
  return at::native::make_dim_mask(dims, self.dim(), may_be_empty);
}

int64_t reducedElements(const at::Tensor& self, DimMask reduced) {
  int64_t count = 1;
  for (int64_t d = 0; d < self.dim(); ++d) count *= reduced[d] ? self.size(d) : 1;
  return count;
}

void launchReduction(
    const ReductionKernel& kernel,
    c10::ScalarType compute,
    const at::Tensor& self,
    DimMask reduced,
    std::array<at::Tensor, 2> outs,
    std::array<double, 2> parameters) {
  const auto& some = outs[0].defined() ? outs[0] : outs[1];
  if (some.numel() == 0) return;
  TORCH_CHECK(
      self.dim() <= PUONE_MAX_DIMS,
      "puone: cannot reduce more than ",
      PUONE_MAX_DIMS,
      " dimensions");
  puone_reduce_args args{};
  args.ndim = static_cast<int32_t>(self.dim());
  args.compute = *kernelDtype(compute == c10::ScalarType::Bool ? compute : computeType(compute));
  args.in_dtype = *kernelDtype(self.scalar_type());
  args.in.data = inputData(self);
  for (int64_t d = 0; d < self.dim(); ++d) {
    const int64_t to = self.dim() - 1 - d;
    args.sizes[to] = self.size(d);
    args.in.strides[to] = self.stride(d) * static_cast<int64_t>(self.itemsize());
    args.reduced |= static_cast<uint32_t>(reduced[d]) << to;
  }
  for (int o = 0; o < 2; ++o) {
    setOutput(args, o, outs[static_cast<size_t>(o)], self, reduced);
    args.parameters[o] = parameters[static_cast<size_t>(o)];
  }
  launchKernel(kernel, args, getCurrentStream(self.device().index()));
}

} // namespace puone
