// SPDX-License-Identifier: BSD-3-Clause
// One optimizer step of many parameters at once.
#include "kernels/args/multi_tensor.h"
#include "kernels/entry.h"
#include "kernels/families.h"

#ifdef PUONE_SIMT
#include "kernels/simt/fused_optimizer.h"
#else
#include "kernels/host/fused_optimizer.h"
#endif

namespace puone::kernels::PUONE_ISA {
namespace {

constexpr Kernel kKernels[] = {
    entry<puone_fused_args, fusedStep<fused::Adam>>("fused_adam"),
    entry<puone_fused_args, fusedStep<fused::Sgd>>("fused_sgd"),
    entry<puone_fused_args, fusedStep<fused::Adagrad>>("fused_adagrad"),
};

} // namespace

std::span<const Kernel> fusedOptimizerKernels() {
  return kKernels;
}

} // namespace puone::kernels::PUONE_ISA
