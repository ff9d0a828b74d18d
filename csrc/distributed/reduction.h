// SPDX-License-Identifier: BSD-3-Clause
// How a reduction is handed to a transport that knows fewer operations and types than c10d: what it
// computes in, and what is done before and after.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <optional>

namespace puone::distributed {

struct Reduction {
  c10d::ReduceOp::RedOpType op; // that the transport computes
  at::ScalarType type;          // that it computes in; the tensor's integer is cast to it and back
  bool average = false;         // the sum is divided by the number of ranks
  bool as_real = false;         // complex numbers are pairs of real ones
  std::optional<at::Tensor> factor = {}; // PREMUL_SUM: what each rank multiplies by before
};

// Throws if the operation is not defined for the type (AVG of integers, BAND of real numbers), or
// if no transport type holds it (float8).
Reduction planReduction(const c10d::ReduceOp& op, at::ScalarType type);

// What is exchanged instead of the tensor: a view, or a product with the factor.
at::Tensor reductionInput(const Reduction& reduction, const at::Tensor& tensor);
at::Tensor reductionOutput(const Reduction& reduction, const at::Tensor& tensor);

// The rest of the computation, on the host.
void finishReduction(const Reduction& reduction, const at::Tensor& host, int ranks);

} // namespace puone::distributed
