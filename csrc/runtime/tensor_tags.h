// SPDX-License-Identifier: BSD-3-Clause
// Tags: words that a program attaches to a tensor of the device, such as "calibrated". The backend
// does not interpret them. They are kept as the tensor's c10::BackendMeta, so they travel with it
// as PyTorch defines: detach(), .data and Parameter() have them, torch.save and pickle write them,
// and loading on the device sets them again. New tensors do not: clone(), to(), views, results.
#pragma once

#include <set>
#include <string>

#include <ATen/core/Tensor.h>

namespace puone {

// The tags of one tensor.
using TensorTags = std::set<std::string>;

// The tags of a tensor; none for a tensor of another device.
// Thread-safe while nobody sets the tags of this tensor.
TensorTags tensorTags(const at::Tensor& tensor);

// Replaces the tags of this tensor; tensors that took theirs from it keep them.
// Throws c10::Error for a tensor of another device. Changes the tensor: not thread-safe.
void setTensorTags(const at::Tensor& tensor, TensorTags tags);

} // namespace puone
