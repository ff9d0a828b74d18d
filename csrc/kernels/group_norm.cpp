// SPDX-License-Identifier: BSD-3-Clause
// Group norm and, as its special case, layer norm.
#include "kernels/args/normalization.h"
#include "kernels/entry.h"
#include "kernels/families.h"

#ifdef PUONE_SIMT
#include "kernels/simt/group_norm.h"
#else
#include "kernels/host/group_norm.h"
#endif

namespace puone::kernels::PUONE_ISA {
namespace {

constexpr Kernel kKernels[] = {
    entry<puone_group_norm_args, groupNormForward>("group_norm"),
    entry<puone_group_norm_args, groupNormBackward>("group_norm_backward"),
};

} // namespace

std::span<const Kernel> groupNormKernels() {
  return kKernels;
}

} // namespace puone::kernels::PUONE_ISA
