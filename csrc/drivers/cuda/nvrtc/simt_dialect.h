// SPDX-License-Identifier: BSD-3-Clause
// Defines for NVRTC what kernels/target.h asks for. It compiles device code only, and everything is
// device code unless it says otherwise.
#pragma once

#define PUONE_FN inline
#define PUONE_DEVICE
#define PUONE_GLOBAL(threads, blocks) __global__ __launch_bounds__(threads, blocks)
#define PUONE_SHARED __shared__
#define PUONE_NOINLINE __noinline__
#define PUONE_UNROLL _Pragma("unroll")
#define PUONE_ROLLED _Pragma("unroll 1")
#define PUONE_ON_DEVICE

namespace puone::kernels::dialect {

enum class Threads {
  kIndependent,
  kCooperating
};

/// Only the host's code starts kernels; nothing here instantiates what calls it.
template <Threads kThreads, class... Arguments>
void start(Arguments... arguments);

} // namespace puone::kernels::dialect
