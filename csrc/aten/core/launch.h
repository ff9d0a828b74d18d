// SPDX-License-Identifier: BSD-3-Clause
// Launching kernels. A call whose kernel the driver lacks goes to the CPU: an operator's entry
// (registration.h) checks for its kernels before it starts. The element type of a launch is known
// only with its arguments, so it is checked here.
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

#include "runtime/kernel.h"
#include "runtime/kernels.h"
#include "runtime/stream.h"

namespace puone {

// The driver's kernel does not take this element type. Thrown before anything is queued; the entry
// of the operator catches it and runs the operator on the CPU.
class UnsupportedElementType final : public c10::NotImplementedError {
 public:
  using NotImplementedError::NotImplementedError;
};

// Throws UnsupportedElementType if the driver has the kernel, but not for this type.
void requireType(const KernelBase& kernel, puone_dtype type);
void requireType(const KernelBase& kernel, c10::ScalarType type);

// Queues a kernel. Its arguments contain the type if the kernel depends on one.
template <class Args>
void launchKernel(const kernel::Kernel<Args>& kernel, const Args& args, const Stream& stream) {
  if constexpr (requires { args.dtype; }) {
    requireType(kernel, static_cast<puone_dtype>(args.dtype));
  } else if constexpr (requires { args.in_dtype; }) {
    requireType(kernel, static_cast<puone_dtype>(args.in_dtype));
  }
  kernel.launch(args, stream);
}

} // namespace puone
