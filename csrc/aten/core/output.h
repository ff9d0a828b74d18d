// SPDX-License-Identifier: BSD-3-Clause
// The memory of inputs and outputs, for kernels that take plain pointers.
//
// A tensor may share its memory with a lazy clone (copy on write): only mutable_data_ptr() makes it
// the owner. So everything that a kernel writes is taken by outputData(), and only what it reads by
// inputData(), which leaves the memory shared.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "aten/core/factory.h"

namespace puone {

// What a kernel reads; null for an undefined tensor. Kernels' arguments have no pointers to const.
inline void* inputData(const at::Tensor& tensor) {
  return tensor.defined() ? const_cast<void*>(tensor.const_data_ptr()) : nullptr;
}

// What a kernel writes, or reads and writes; null for an undefined tensor.
inline void* outputData(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr() : nullptr;
}

inline at::Tensor contiguousOrNone(const std::optional<at::Tensor>& tensor) {
  return tensor && tensor->defined() ? tensor->contiguous() : at::Tensor();
}

// An output for a kernel that writes contiguous memory: the tensor itself if it is contiguous, else
// a temporary one that copyBack() copies to it. `wanted` must outlive this.
class ContiguousOutput {
 public:
  explicit ContiguousOutput(const at::Tensor& wanted)
      : wanted_(wanted),
        tensor_(wanted.is_contiguous() ? wanted : newResult(wanted.sizes(), {}, wanted.options())) {
  }

  const at::Tensor& tensor() const {
    return tensor_;
  }

  void* data() const {
    return outputData(tensor_);
  }

  // After the launch.
  void copyBack() const {
    if (!tensor_.is_same(wanted_)) wanted_.copy_(tensor_);
  }

 private:
  const at::Tensor& wanted_;
  at::Tensor tensor_;
};

// For an operator that changes a copy of `self`: its out= starts as that copy.
inline void startAsCopy(const at::Tensor& out, const at::Tensor& self) {
  if (!out.is_same(self)) out.copy_(self);
}

} // namespace puone
