// SPDX-License-Identifier: BSD-3-Clause
// softmax and log_softmax, forwards and backwards.
#include <ATen/WrapDimUtils.h>
#include <torch/library.h>

#include "aten/core/aside.h"
#include "aten/core/elementwise.h"
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
    static const Kernel kernel{"softmax"};
    checkType("softmax", self.scalar_type(), kRealTypes);
    if (self.numel() == 0) return;
    const Tensor in = self.contiguous();
    puone_softmax_args args = softmaxArgs(in, dim, kLogarithm);
    computeContiguous(out, [&](const Tensor& to) {
      args.out_dtype = *kernelDtype(to.scalar_type());
      args.in = dataOf(in);
      args.out = dataOf(to);
      kernel.launch(args, getCurrentStream(self.device().index()));
    });
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
    static const Kernel kernel{"softmax_backward"};
    checkType("softmax_backward", grad.scalar_type(), kRealTypes);
    if (grad.numel() == 0) return;
    const Tensor in = grad.contiguous(), result = output.contiguous();
    puone_softmax_args args = softmaxArgs(in, dim, kLogarithm);
    computeContiguous(grad_input, [&](const Tensor& to) {
      args.out_dtype = *kernelDtype(to.scalar_type());
      args.in = dataOf(in);
      args.result = dataOf(result);
      args.out = dataOf(to);
      kernel.launch(args, getCurrentStream(grad.device().index()));
    });
  }
};

} // namespace
} // namespace puone

#include "aten/norm/softmax_registrations.inc"
