// SPDX-License-Identifier: BSD-3-Clause
// softmax and log_softmax, forwards and backwards.
#include "kernels/args/normalization.h"
#include "kernels/entry.h"
#include "kernels/families.h"

#ifdef PUONE_SIMT
#include "kernels/simt/softmax.h"
#else
#include "kernels/host/softmax.h"
#endif

namespace puone::kernels::PUONE_ISA {
namespace {

constexpr Kernel kKernels[] = {
    entry<puone_softmax_args, softmaxForward>("softmax"),
    entry<puone_softmax_args, softmaxBackward>("softmax_backward"),
};

} // namespace

std::span<const Kernel> softmaxKernels() {
  return kKernels;
}

} // namespace puone::kernels::PUONE_ISA
