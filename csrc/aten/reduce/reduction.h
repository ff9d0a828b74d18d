// SPDX-License-Identifier: BSD-3-Clause
// Launching reductions and scans (csrc/kernels/reduce.h, scan.h).
#pragma once

#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <array>

#include "aten/core/launch.h"

namespace puone {

using ReductionKernel = kernel::Kernel<puone_reduce_args>;
using DimMask = at::TensorIteratorBase::DimMask;

// The mask of these dimensions; no list means all, an empty one as well unless it may be empty.
DimMask dimMask(at::OptionalIntArrayRef dims, const at::Tensor& self, bool may_be_empty = false);

// How many elements of `self` become one.
int64_t reducedElements(const at::Tensor& self, DimMask reduced);

// Queues the kernel: `self` reduced over `reduced`, with the reduced dimensions kept as size 1 or
// dropped in the outputs. It computes in the type that stands for `compute`, in bool for bool.
// Outputs may be undefined if not wanted.
void launchReduction(
    const ReductionKernel& kernel,
    c10::ScalarType compute,
    const at::Tensor& self,
    DimMask reduced,
    std::array<at::Tensor, 2> outs,
    std::array<double, 2> parameters = {});

} // namespace puone
