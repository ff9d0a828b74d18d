// SPDX-License-Identifier: BSD-3-Clause
// Checks of what c10d hands over. They throw ValueError on the caller, before anything is queued:
// what a rank finds wrong with its own arguments, no other rank has to wait for.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace puone::distributed {

using Tensors = std::vector<at::Tensor>;

// All are dense puone tensors of one device, which is returned. `name`: of the call.
c10::Device requireOneDevice(const char* name, const Tensors& tensors);
// c10d passes a list for calls that once took a tensor per device.
at::Tensor& requireOne(const char* name, Tensors& tensors);
Tensors& requireOne(const char* name, std::vector<Tensors>& lists);
void requireSameType(const char* name, const Tensors& tensors);
void requireSameSize(const char* name, const Tensors& tensors);
void requireCount(const char* name, const char* what, size_t count, int ranks);
void requireRank(const char* name, int64_t rank, int ranks);
// The whole has `ranks` times as many elements as the part.
void requireWhole(const char* name, const at::Tensor& whole, const at::Tensor& part, int ranks);
// Rows of the first dimension for each rank; an equal share for each if `splits` is empty.
std::vector<int64_t> requireSplits(
    const char* name, const at::Tensor& tensor, const std::vector<int64_t>& splits, int ranks);

// "all_reduce of 4 x Float".
std::string describeCall(const char* name, const Tensors& tensors);

} // namespace puone::distributed
