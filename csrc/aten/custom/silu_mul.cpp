// SPDX-License-Identifier: BSD-3-Clause
// An operator of the backend's own: puone::silu_mul(gate, up) = silu(gate) * up, the gate of the
// feed-forward layers of most language models (SwiGLU). Its gradient keeps the two inputs and
// nothing else; the composition of aten operators keeps silu(gate) as well.
//
// The file is complete: schema, kernels, shapes, gradients and autocast. It shows where a vendor's
// fused kernel goes; the kernels here launch existing device kernels through aten, so that the
// operator works on every driver and can be compared with the CPU.
#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <c10/core/SymBool.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/library.h>

#include "runtime/device.h"

namespace puone {
namespace {

using at::Tensor;
using TwoTensors = std::tuple<Tensor, Tensor>;

// [quote: schema]
TORCH_LIBRARY_FRAGMENT(puone, m) {
  // pt2_compliant_tag: the operator has a shape function, and torch.compile may rely on it.
  m.def("silu_mul(Tensor gate, Tensor up) -> Tensor", {at::Tag::pt2_compliant_tag});
  m.def(
      "silu_mul_backward(Tensor grad, Tensor gate, Tensor up) -> (Tensor, Tensor)",
      {at::Tag::pt2_compliant_tag});
}

// The operators as functions that go through the dispatcher.
Tensor callSiluMul(const Tensor& gate, const Tensor& up) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("puone::silu_mul", "")
                             .typed<Tensor(const Tensor&, const Tensor&)>();
  return op.call(gate, up);
}

TwoTensors callSiluMulBackward(const Tensor& grad, const Tensor& gate, const Tensor& up) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("puone::silu_mul_backward", "")
                             .typed<TwoTensors(const Tensor&, const Tensor&, const Tensor&)>();
  return op.call(grad, gate, up);
}
// [end: schema]

// [quote: arguments]
// Sizes may be symbolic (torch.compile, torch.export): each comparison of them becomes a guard or
// a run-time assertion of the traced graph.
void checkAlike(const char* name, const Tensor& tensor, const Tensor& gate) {
  TORCH_CHECK(
      tensor.device() == gate.device(),
      "silu_mul: ",
      name,
      " is on ",
      tensor.device(),
      ", but gate is on ",
      gate.device());
  TORCH_CHECK(
      tensor.scalar_type() == gate.scalar_type(),
      "silu_mul: ",
      name,
      " is ",
      tensor.scalar_type(),
      ", but gate is ",
      gate.scalar_type());
  TORCH_CHECK(
      tensor.dim() == gate.dim(),
      "silu_mul: ",
      name,
      " has ",
      tensor.dim(),
      " dimensions, but gate has ",
      gate.dim());
  for (int64_t d = 0; d < gate.dim(); ++d) {
    TORCH_SYM_CHECK(
        tensor.sym_size(d).sym_eq(gate.sym_size(d)),
        "silu_mul: ",
        name,
        " has size ",
        tensor.sym_size(d),
        " in dimension ",
        d,
        ", but gate has ",
        gate.sym_size(d));
  }
}

void checkOperands(const Tensor& gate, const Tensor& up) {
  TORCH_CHECK(
      at::isFloatingType(gate.scalar_type()),
      "silu_mul: gate must be a floating-point tensor, not ",
      gate.scalar_type());
  checkAlike("up", up, gate);
}
// [end: arguments]

// [quote: kernels]
// A vendor's fused kernel takes the place of the two calls that follow empty_like().
Tensor siluMul(const Tensor& gate, const Tensor& up) {
  checkOperands(gate, up);
  Tensor out = at::empty_like(gate);
  at::silu_out(out, gate);
  return out.mul_(up);
}

TwoTensors siluMulBackward(const Tensor& grad, const Tensor& gate, const Tensor& up) {
  checkOperands(gate, up);
  checkAlike("grad", grad, gate);
  Tensor grad_gate = at::empty_like(gate), grad_up = at::empty_like(up);
  at::mul_out(grad_gate, grad, up);
  at::silu_backward_out(grad_gate, grad_gate, gate);
  at::silu_out(grad_up, gate);
  grad_up.mul_(grad);
  return {grad_gate, grad_up};
}

TORCH_LIBRARY_IMPL(puone, PrivateUse1, m) {
  m.impl("silu_mul", &siluMul);
  m.impl("silu_mul_backward", &siluMulBackward);
}

TORCH_LIBRARY_IMPL(puone, CPU, m) {
  m.impl("silu_mul", &siluMul);
  m.impl("silu_mul_backward", &siluMulBackward);
}
// [end: kernels]

// [quote: meta]
// Same sizes, strides and type as the kernels return, and the same errors; no memory is touched.
Tensor siluMulMeta(const Tensor& gate, const Tensor& up) {
  checkOperands(gate, up);
  return at::empty_like(gate);
}

TwoTensors siluMulBackwardMeta(const Tensor& grad, const Tensor& gate, const Tensor& up) {
  checkOperands(gate, up);
  checkAlike("grad", grad, gate);
  return {at::empty_like(gate), at::empty_like(up)};
}

TORCH_LIBRARY_IMPL(puone, Meta, m) {
  m.impl("silu_mul", &siluMulMeta);
  m.impl("silu_mul_backward", &siluMulBackwardMeta);
}
// [end: meta]

// [quote: autograd]
// torch.func.grad refuses Functions written in C++. An operator that needs it gets its gradient by
// torch.library.register_autograd, in Python.
class SiluMul : public torch::autograd::Function<SiluMul> {
 public:
  static Tensor forward(
      torch::autograd::AutogradContext* ctx, const Tensor& gate, const Tensor& up) {
    ctx->save_for_backward({gate, up});
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    return callSiluMul(gate, up);
  }

  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* ctx, const torch::autograd::variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    auto [grad_gate, grad_up] = callSiluMulBackward(grads[0], saved[0], saved[1]);
    return {grad_gate, grad_up};
  }
};

Tensor siluMulAutograd(const Tensor& gate, const Tensor& up) {
  return SiluMul::apply(gate, up);
}

// With create_graph=True the gradient is differentiated again: as a composition of operators that
// have derivatives, which aten::silu_backward has not on every device.
TwoTensors siluMulBackwardAutograd(const Tensor& grad, const Tensor& gate, const Tensor& up) {
  if (torch::autograd::compute_requires_grad(grad, gate, up)) {
    const Tensor sigmoid = at::sigmoid(gate), silu = gate * sigmoid;
    return {grad * up * (sigmoid + silu - sigmoid * silu), grad * silu};
  }
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  return callSiluMulBackward(grad, gate, up);
}

TORCH_LIBRARY_IMPL(puone, AutogradPrivateUse1, m) {
  m.impl("silu_mul", &siluMulAutograd);
  m.impl("silu_mul_backward", &siluMulBackwardAutograd);
}

TORCH_LIBRARY_IMPL(puone, AutogradCPU, m) {
  m.impl("silu_mul", &siluMulAutograd);
  m.impl("silu_mul_backward", &siluMulBackwardAutograd);
}
// [end: autograd]

// [quote: autocast]
// Like aten::mul, the operator computes in the widest type of its operands.
Tensor siluMulAutocast(const Tensor& gate, const Tensor& up) {
  c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastPrivateUse1);
  const auto lowest = at::autocast::get_lower_precision_fp_from_device_type(kDeviceType);
  const auto type = at::autocast::promote_type(lowest, kDeviceType, gate, up);
  return callSiluMul(
      at::autocast::cached_cast(type, gate, kDeviceType),
      at::autocast::cached_cast(type, up, kDeviceType));
}

TORCH_LIBRARY_IMPL(puone, AutocastPrivateUse1, m) {
  m.impl("silu_mul", &siluMulAutocast);
}
// [end: autocast]

} // namespace
} // namespace puone
