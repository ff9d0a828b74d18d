// SPDX-License-Identifier: BSD-3-Clause
// Lists of tensors for kernels that work on many at once (csrc/kernels/args/multi_tensor.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <initializer_list>

#include "aten/core/launch.h"
#include "aten/core/operands.h"
#include "kernels/args/multi_tensor.h"
#include "runtime/stream.h"

namespace puone {

// Whether the tensors of all lists are of one floating-point type and device, and those with the
// same index dense and laid out alike. The lists must be of equal length, but for empty ones.
inline bool areAlike(std::initializer_list<at::TensorList> lists) {
  const at::TensorList& leaders = *lists.begin();
  const at::Tensor& first = leaders[0];
  if (!c10::isFloatingType(first.scalar_type()) || !kernelDtype(first.scalar_type())) return false;
  for (const at::TensorList& list : lists) {
    if (!list.empty() && list.size() != leaders.size()) return false;
    for (size_t i = 0; i < list.size(); ++i) {
      const at::Tensor &tensor = list[i], &leader = leaders[i];
      if (tensor.scalar_type() != first.scalar_type() || tensor.device() != first.device() ||
          tensor.layout() != c10::kStrided || tensor.sizes() != leader.sizes() ||
          tensor.strides() != leader.strides() || !tensor.is_non_overlapping_and_dense() ||
          tensor.is_neg()) {
        return false;
      }
    }
  }
  return true;
}

// Launches the kernel for all tensors of a list, as many at a time as a launch holds.
// fill(args.tensors[t], i) describes tensor i, but for its number of elements.
template <class Args, class Fill>
void launchTensors(
    const kernel::Kernel<Args>& kernel, Args& args, at::TensorList tensors, const Fill& fill) {
  const Stream stream = getCurrentStream(tensors[0].device().index());
  for (size_t begin = 0; begin < tensors.size(); begin += PUONE_MAX_TENSORS) {
    const size_t end = std::min(tensors.size(), begin + PUONE_MAX_TENSORS);
    for (size_t i = begin; i < end; ++i) {
      auto& tensor = args.tensors[i - begin];
      tensor.n = tensors[i].numel();
      fill(tensor, i);
    }
    args.count = static_cast<int32_t>(end - begin);
    launchKernel(kernel, args, stream);
  }
}

} // namespace puone
