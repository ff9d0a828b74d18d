// SPDX-License-Identifier: BSD-3-Clause
// The cells of LSTM and GRU. torch decomposes both down to these "fused" operators on every device
// but the CPU, and has no composite form of them; here they are written in other operators.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

#include <optional>
#include <tuple>

#include "aten/nn/rnn_ops.h"

namespace puone {
namespace {

using at::Tensor;

Tensor withBias(const Tensor& gates, const std::optional<Tensor>& bias) {
  return bias && bias->defined() ? gates + *bias : gates;
}

// d sigmoid and d tanh in terms of their result.
Tensor sigmoidGrad(const Tensor& grad, const Tensor& result) {
  return grad * (1 - result) * result;
}

Tensor tanhGrad(const Tensor& grad, const Tensor& result) {
  return grad * (1 - result * result);
}

// Returns the new hidden state, the new cell state, and the activated gates (input, forget, cell,
// output) for the backward.
std::tuple<Tensor, Tensor, Tensor> lstmCell(
    const Tensor& input_gates,
    const Tensor& hidden_gates,
    const Tensor& cx,
    const std::optional<Tensor>& input_bias,
    const std::optional<Tensor>& hidden_bias) {
  const Tensor gates = withBias(input_gates, input_bias) + withBias(hidden_gates, hidden_bias);
  const auto chunks = gates.chunk(4, /*dim=*/1);
  const Tensor in = at::sigmoid(chunks[0]);
  const Tensor forget = at::sigmoid(chunks[1]);
  const Tensor cell = at::tanh(chunks[2]);
  const Tensor out = at::sigmoid(chunks[3]);
  const Tensor cy = forget * cx + in * cell;
  const Tensor hy = out * at::tanh(cy);
  return {hy, cy, at::cat({in, forget, cell, out}, /*dim=*/1)};
}

// Returns the gradients of the gates, of cx and, where there is one, of either bias.
std::tuple<Tensor, Tensor, Tensor> lstmCellBackward(
    const std::optional<Tensor>& grad_hy,
    const std::optional<Tensor>& grad_cy,
    const Tensor& cx,
    const Tensor& cy,
    const Tensor& workspace,
    bool has_bias) {
  const bool has_hy = grad_hy && grad_hy->defined();
  const bool has_cy = grad_cy && grad_cy->defined();
  if (!has_hy && !has_cy) return {};
  const auto chunks = workspace.chunk(4, /*dim=*/1);
  const Tensor& in = chunks[0];
  const Tensor& forget = chunks[1];
  const Tensor& cell = chunks[2];
  const Tensor& out = chunks[3];
  const Tensor tanh_cy = at::tanh(cy);
  const Tensor grad_h = has_hy ? *grad_hy : at::zeros_like(cy);
  Tensor grad_c = tanhGrad(grad_h * out, tanh_cy);
  if (has_cy) grad_c = grad_c + *grad_cy;
  const Tensor grad_gates = at::cat(
      {sigmoidGrad(grad_c * cell, in),
       sigmoidGrad(grad_c * cx, forget),
       tanhGrad(grad_c * in, cell),
       sigmoidGrad(grad_h * tanh_cy, out)},
      /*dim=*/1);
  return {grad_gates, grad_c * forget, has_bias ? grad_gates.sum(0, /*keepdim=*/false) : Tensor()};
}

// Returns the new hidden state and what the backward needs: the reset, update and new gates, the
// old hidden state, and the hidden part of the new gate before it is reset.
std::tuple<Tensor, Tensor> gruCell(
    const Tensor& input_gates,
    const Tensor& hidden_gates,
    const Tensor& hx,
    const std::optional<Tensor>& input_bias,
    const std::optional<Tensor>& hidden_bias) {
  const auto from_input = withBias(input_gates, input_bias).chunk(3, /*dim=*/1);
  const auto from_hidden = withBias(hidden_gates, hidden_bias).chunk(3, /*dim=*/1);
  const Tensor reset = at::sigmoid(from_input[0] + from_hidden[0]);
  const Tensor update = at::sigmoid(from_input[1] + from_hidden[1]);
  const Tensor fresh = at::tanh(from_input[2] + reset * from_hidden[2]);
  const Tensor hy = fresh + update * (hx - fresh);
  return {hy, at::cat({reset, update, fresh, hx, from_hidden[2]}, /*dim=*/1)};
}

// Returns the gradients of the input gates, the hidden gates, hx, the input bias, the hidden bias.
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> gruCellBackward(
    const Tensor& grad_hy, const Tensor& workspace, bool has_bias) {
  const auto chunks = workspace.chunk(5, /*dim=*/1);
  const Tensor& reset = chunks[0];
  const Tensor& update = chunks[1];
  const Tensor& fresh = chunks[2];
  const Tensor& hx = chunks[3];
  const Tensor& hidden = chunks[4];
  const Tensor grad_fresh = tanhGrad(grad_hy * (1 - update), fresh);
  const Tensor grad_update = sigmoidGrad(grad_hy * (hx - fresh), update);
  const Tensor grad_reset = sigmoidGrad(grad_fresh * hidden, reset);
  const Tensor grad_input = at::cat({grad_reset, grad_update, grad_fresh}, /*dim=*/1);
  const Tensor grad_hidden = at::cat({grad_reset, grad_update, grad_fresh * reset}, /*dim=*/1);
  const auto bias_grad = [has_bias](const Tensor& grad) {
    return has_bias ? grad.sum(0, /*keepdim=*/false) : Tensor();
  };
  return {grad_input, grad_hidden, grad_hy * update, bias_grad(grad_input), bias_grad(grad_hidden)};
}

} // namespace
} // namespace puone

#include "aten/nn/rnn_registrations.inc"
