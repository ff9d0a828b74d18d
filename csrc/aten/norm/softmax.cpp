// SPDX-License-Identifier: BSD-3-Clause
// softmax and log_softmax, forwards and backwards.
#include <ATen/WrapDimUtils.h>
#include <torch/library.h>

#include "aten/core/elementwise.h"
#include "aten/core/gradient.h"
#include "aten/core/launch.h"
#include "aten/core/output.h"
#include "aten/norm/softmax_ops.h"
#include "kernels/args/normalization.h"
#include "runtime/stream.h"

namespace puone {
namespace {

using at::Tensor;

puone_softmax_args softmaxArgs(const Tensor& in, int64_t dim, bool logarithm) {
  puone_softmax_args args{};
  args.logarithm = logarithm;
  args.in_dtype = *kernelDtype(in.scalar_type());
  dim = at::maybe_wrap_dim(dim, in.dim());
  args.outer = args.inner = args.size = 1;
  for (int64_t d = 0; d < in.dim(); ++d) {
    (d < dim ? args.outer : d == dim ? args.size : args.inner) *= in.size(d);
  }
  return args;
}

template <class Meta, bool kLogarithm>
struct Softmax : Meta {
  void impl(const Tensor& self, int64_t dim, bool, const Tensor& out) {
    checkType("softmax", self.scalar_type(), kRealTypes);
    if (self.numel() == 0) return;
    const Tensor in = self.contiguous();
    puone_softmax_args args = softmaxArgs(in, dim, kLogarithm);
    const ContiguousOutput result(out);
    args.out_dtype = *kernelDtype(out.scalar_type());
    args.in = inputData(in);
    args.out = result.data();
    launchKernel(kernel::softmax, args, getCurrentStream(self.device().index()));
    result.copyBack();
  }
};

template <class Meta, bool kLogarithm>
struct SoftmaxBackward : Meta {
  void impl(
      const Tensor& grad,
      const Tensor& output,
      int64_t dim,
      c10::ScalarType,
      const Tensor& grad_input) {
    checkType("softmax_backward", grad.scalar_type(), kRealTypes);
    checkGradientSizes(grad, output.sizes());
    if (grad.numel() == 0) return;
    const Tensor in = grad.contiguous(), result = output.contiguous();
    puone_softmax_args args = softmaxArgs(in, dim, kLogarithm);
    const ContiguousOutput out(grad_input);
    args.out_dtype = *kernelDtype(grad_input.scalar_type());
    args.in = inputData(in);
    args.result = inputData(result);
    args.out = out.data();
    launchKernel(kernel::softmax_backward, args, getCurrentStream(grad.device().index()));
    out.copyBack();
  }
};

} // namespace
} // namespace puone

#include "aten/norm/softmax_registrations.inc"
