# SPDX-License-Identifier: BSD-3-Clause
"""A custom operator with kernels of its own, a gradient and a shape: x * sigmoid(beta * x)."""

import torch

from torch_puone import cpp_extension

# [quote: operator]
DEVICE = r"""
struct Forward {
  Arguments arguments; const float* x; float* y; double beta; int64_t extents[2];
};
PUONE_MODULE_MAP(swish, Forward) {
  const float x = args.x[i];
  args.y[i] = x / (1 + ops::exp(-float(args.beta) * x));
}
struct Backward {
  Arguments arguments; const float *g, *x; float* dx; double beta; int64_t extents[3];
};
PUONE_MODULE_MAP(swish_backward, Backward) {
  const float x = args.x[i], b = float(args.beta), s = 1 / (1 + ops::exp(-b * x));
  args.dx[i] = args.g[i] * (s + b * x * s * (1 - s));
}
"""
HOST = r"""
#include <ATen/ops/empty_like.h>
#include <torch/library.h>
using namespace puone::extension;
at::Tensor swish(const at::Tensor& given, double beta) {
  TORCH_CHECK(given.scalar_type() == at::kFloat, "swish takes float32");
  static const Kernel kernel("swish");
  auto x = given.contiguous(), y = at::empty_like(x);
  kernel.map(x.numel(), {read(x), write(y), beta});
  return y;
}
at::Tensor swish_backward(const at::Tensor& grad, const at::Tensor& given, double beta) {
  TORCH_CHECK(grad.scalar_type() == at::kFloat, "swish takes float32");
  static const Kernel kernel("swish_backward");
  auto g = grad.contiguous(), x = given.contiguous(), dx = at::empty_like(x);
  kernel.map(x.numel(), {read(g), read(x), write(dx), beta});
  return dx;
}
TORCH_LIBRARY(demo, m) {
  m.def("swish(Tensor x, float beta) -> Tensor");
  m.def("swish_backward(Tensor g, Tensor x, float beta) -> Tensor");
}
TORCH_LIBRARY_IMPL(demo, PrivateUse1, m) {
  m.impl("swish", swish);
  m.impl("swish_backward", swish_backward);
}
"""
cpp_extension.load_inline("swish", HOST, DEVICE, is_python_module=False, no_implicit_headers=True)
demo = torch.ops.demo
torch.library.register_fake("demo::swish", lambda x, beta: x.new_empty(x.shape))
torch.library.register_fake("demo::swish_backward", lambda g, x, beta: x.new_empty(x.shape))
torch.library.register_autograd(
    "demo::swish",
    lambda ctx, g: (demo.swish_backward(g, ctx.saved_tensors[0], ctx.beta), None),
    setup_context=lambda ctx, inputs, output: (
        ctx.save_for_backward(inputs[0]),
        setattr(ctx, "beta", inputs[1]),
    ),
)
# [end: operator]

if __name__ == "__main__":
    x = torch.randn(40, 25, device="puone", requires_grad=True)
    torch.testing.assert_close(demo.swish(x.t()[1:], 1.5), demo.swish(x, 1.5).t()[1:])
    expected = x * torch.sigmoid(1.5 * x)
    torch.testing.assert_close(demo.swish(x, 1.5), expected)
    (gradient,) = torch.autograd.grad(demo.swish(x, 1.5).sum(), x)
    torch.testing.assert_close(gradient, torch.autograd.grad(expected.sum(), x)[0])
    compiled = torch.compile(lambda x: demo.swish(x * 2, 1.5) + 1, fullgraph=True)
    torch.testing.assert_close(compiled(x), demo.swish(x * 2, 1.5) + 1)
    # Of opcheck's tests, that of the gradient's registration knows three device types only.
    tests = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
    torch.library.opcheck(demo.swish, (x, 1.5), test_utils=tests)
    print("swish: forward, gradient and compiled are right on", x.device)
