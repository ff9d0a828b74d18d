// SPDX-License-Identifier: BSD-3-Clause
// Launching random kernels (csrc/kernels/random.h).
#pragma once

#include <ATen/TensorIterator.h>
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

#include <cstdint>
#include <optional>

#include "aten/core/launch.h"
#include "runtime/generator.h"

namespace puone {

using RandomKernel = kernel::Kernel<puone_random_args>;

template <class Args>
void setPosition(Args& args, const PhiloxPosition& position) {
  args.seed = position.seed;
  args.offset = position.offset;
  args.state = position.state;
}

// An iterator over the operands in the order of the outputs' elements, which is the order of the
// numbers they get; operators that draw iterate in no other. Inputs may be broadcast.
at::TensorIterator inElementOrder(
    std::initializer_list<at::TensorBase> outputs,
    std::initializer_list<at::TensorBase> inputs = {});

// Queues the kernel, as launchElementwise() does, with the next numbers of the generator: at most
// `numbers` of 32 bits per element. It is the given one, which must be of a puone device, or the
// default generator of the operands' device. An iterator without elements draws nothing.
void launchRandom(
    const RandomKernel& kernel,
    at::TensorIteratorBase& iter,
    c10::ScalarType compute,
    c10::ArrayRef<c10::Scalar> parameters,
    const std::optional<at::Generator>& generator,
    uint64_t numbers = 4);

} // namespace puone
