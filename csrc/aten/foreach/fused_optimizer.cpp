// SPDX-License-Identifier: BSD-3-Clause
// One optimizer step of many parameters in one launch.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <optional>

#include "aten/core/launch.h"
#include "aten/core/output.h"
#include "aten/foreach/fused_optimizer_ops.h"
#include "aten/foreach/multi_tensor.h"

namespace puone {
namespace {

using at::Tensor;
using at::TensorList;

// A learning rate is a number, or a tensor, which is read when the step runs if it is on the
// device.
void setRate(puone_fused_args& args, double lr) {
  args.lr = lr;
}
void setRate(puone_fused_args& args, const Tensor& lr) {
  if (lr.is_cpu()) return setRate(args, lr.item().toDouble());
  TORCH_CHECK(
      lr.scalar_type() == c10::kFloat || lr.scalar_type() == c10::kDouble,
      "lr must be a float32 or float64 tensor, but is ",
      lr.scalar_type());
  args.lr_dtype = *kernelDtype(lr.scalar_type());
  args.lr_tensor = inputData(lr);
}

void* floatAddress(const std::optional<Tensor>& tensor) {
  if (!tensor || !tensor->defined()) return nullptr;
  TORCH_CHECK(
      tensor->scalar_type() == c10::kFloat && tensor->numel() == 1,
      "grad_scale and found_inf must be float32 tensors of one element");
  return inputData(*tensor);
}

// What every step has besides its numbers.
struct Step {
  TensorList parameters;
  TensorList gradients;
  std::array<TensorList, 3> states{}; // empty: none
  TensorList steps{};

  void run(
      const kernel::Kernel<puone_fused_args>& kernel,
      puone_fused_args& args,
      bool maximize,
      const std::optional<Tensor>& grad_scale,
      const std::optional<Tensor>& found_inf) const {
    if (parameters.empty()) return;
    TORCH_CHECK(
        areAlike({parameters, gradients, states[0], states[1], states[2]}),
        "params, grads and optimizer states must have the same floating-point dtype, device, and "
        "layout");
    for (const Tensor& step : steps) {
      TORCH_CHECK(
          step.scalar_type() == c10::kFloat && step.device() == parameters[0].device(),
          "state_steps must be float32 tensors on the device of the parameters");
    }
    args.dtype = *kernelDtype(parameters[0].scalar_type());
    args.maximize = maximize;
    args.grad_scale = floatAddress(grad_scale);
    args.found_inf = floatAddress(found_inf);
    launchTensors(kernel, args, parameters, [&](auto& tensor, size_t i) {
      tensor.parameter = parameters[i].data_ptr();
      tensor.gradient = gradients[i].data_ptr();
      for (size_t s = 0; s < states.size(); ++s) {
        tensor.states[s] = states[s].empty() ? nullptr : states[s][i].data_ptr();
      }
      tensor.step = steps.empty() ? nullptr : steps[i].data_ptr();
    });
  }
};

template <bool kDecoupled, class Rate>
void adam(
    TensorList self,
    TensorList grads,
    TensorList exp_avgs,
    TensorList exp_avg_sqs,
    TensorList max_exp_avg_sqs,
    TensorList state_steps,
    Rate lr,
    double beta1,
    double beta2,
    double weight_decay,
    double eps,
    bool amsgrad,
    bool maximize,
    const std::optional<Tensor>& grad_scale,
    const std::optional<Tensor>& found_inf) {
  puone_fused_args args{};
  setRate(args, lr);
  args.beta1 = beta1;
  args.beta2 = beta2;
  args.weight_decay = weight_decay;
  args.eps = eps;
  args.amsgrad = amsgrad;
  args.decoupled = kDecoupled;
  const TensorList largest = amsgrad ? max_exp_avg_sqs : TensorList();
  const Step step{self, grads, {exp_avgs, exp_avg_sqs, largest}, state_steps};
  step.run(kernel::fused_adam, args, maximize, grad_scale, found_inf);
}

template <class Rate>
void sgd(
    TensorList self,
    TensorList grads,
    TensorList momentum_buffers,
    double weight_decay,
    double momentum,
    Rate lr,
    double dampening,
    bool nesterov,
    bool maximize,
    bool is_first_step,
    const std::optional<Tensor>& grad_scale,
    const std::optional<Tensor>& found_inf) {
  puone_fused_args args{};
  setRate(args, lr);
  args.beta1 = momentum;
  args.beta2 = dampening;
  args.weight_decay = weight_decay;
  args.nesterov = nesterov;
  args.first_step = is_first_step;
  const Step step{self, grads, {momentum_buffers}};
  step.run(kernel::fused_sgd, args, maximize, grad_scale, found_inf);
}

template <class Rate>
void adagrad(
    TensorList self,
    TensorList grads,
    TensorList state_sums,
    TensorList state_steps,
    Rate lr,
    double lr_decay,
    double weight_decay,
    double eps,
    bool maximize,
    const std::optional<Tensor>& grad_scale,
    const std::optional<Tensor>& found_inf) {
  puone_fused_args args{};
  setRate(args, lr);
  args.beta2 = lr_decay;
  args.weight_decay = weight_decay;
  args.eps = eps;
  const Step step{self, grads, {state_sums}, state_steps};
  step.run(kernel::fused_adagrad, args, maximize, grad_scale, found_inf);
}

} // namespace
} // namespace puone

#include "aten/foreach/fused_optimizer_registrations.inc"
