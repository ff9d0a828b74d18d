// SPDX-License-Identifier: BSD-3-Clause
// Registration of kernels: libraries, boxed kernels, dispatch stubs.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/op_registration/adaption.h>
#include <ATen/core/stack.h>
#include <ATen/native/DispatchStub.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/library.h>

namespace at::native {

using probe_fn = void (*)(int);
DECLARE_DISPATCH(probe_fn, probe_stub)
DEFINE_DISPATCH(probe_stub);
inline void probeKernel(int) {}
REGISTER_PRIVATEUSE1_DISPATCH(probe_stub, &probeKernel)

} // namespace at::native

namespace probe {
namespace {

at::Tensor identity(const at::Tensor& self) {
  std::optional<c10::Device> common;
  c10::impl::check_and_update_common_device(common, self, "identity", "self");
  at::AutoDispatchBelowAutograd below;
  at::AutoDispatchBelowADInplaceOrView below_views;
  static auto op = c10::Dispatcher::singleton()
                       .findSchemaOrThrow("aten::alias", "")
                       .typed<at::Tensor(const at::Tensor&)>();
  (void)op.redispatch(c10::DispatchKeySet(c10::DispatchKey::CPU), self);
  return op.call(self);
}

void boxed(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  (void)schema.name();
  (void)schema.overload_name();
  (void)schema.arguments().size();
  for (const c10::Argument& argument : schema.returns()) {
    (void)argument.alias_info();
    (void)argument.name();
  }
  (void)op.operator_name();
  (void)op.hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1);
  at::Tensor self = torch::jit::pop(*stack).toTensor();
  (void)torch::jit::peek(*stack, 0, 1);
  (void)torch::jit::last(*stack, 1);
  torch::jit::drop(*stack, 1);
  torch::jit::push(*stack, self);
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  op.callBoxed(stack);
}

void boxedWithKeys(const c10::OperatorHandle&, c10::DispatchKeySet, torch::jit::Stack*) {}

struct Functor final : c10::OperatorKernel {
  at::Tensor operator()(const at::Tensor& self) {
    return self;
  }
};

struct Listener final : c10::OpRegistrationListener {
  void onOperatorRegistered(const c10::OperatorHandle&) override;
  void onOperatorDeregistered(const c10::OperatorHandle&) override;
};

void callStub(c10::DeviceType device) {
  at::native::probe_stub(device, 1);
}

TORCH_LIBRARY(probe_ops, m) {
  m.def("identity(Tensor self) -> Tensor");
  m.def(torch::schema("other(Tensor self) -> Tensor", c10::AliasAnalysisKind::FROM_SCHEMA));
  m.impl("identity", torch::dispatch(c10::DispatchKey::CPU, TORCH_FN(identity)));
}

TORCH_LIBRARY_FRAGMENT(probe_ops, m) {
  m.def("third(Tensor self) -> Tensor");
}

TORCH_LIBRARY_IMPL(probe_ops, PrivateUse1, m) {
  m.impl("identity", &identity);
  m.impl("other", torch::CppFunction::makeFromBoxedFunction<&boxed>());
  m.impl("third", TORCH_FN(identity));
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&boxed>());
}

TORCH_LIBRARY_IMPL(_, AutogradPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(probe_ops, AutogradPrivateUse1, m) {
  m.impl("identity", torch::autograd::autogradNotImplementedFallback());
}

void useKernels() {
  (void)c10::Dispatcher::singleton().addRegistrationListener(std::make_unique<Listener>());
  (void)c10::KernelFunction::makeFromBoxedFunction<&boxed>();
  (void)c10::KernelFunction::makeFromBoxedFunction<&boxedWithKeys>();
  (void)c10::KernelFunction::makeFromUnboxedFunctor<false, Functor>(std::make_unique<Functor>());
  (void)c10::BoxedKernel::makeFromFunction<&boxed>();
  (void)c10::Dispatcher::singleton().findSchema({"aten::add", "Tensor"});
}

} // namespace
} // namespace probe
