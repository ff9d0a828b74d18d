// SPDX-License-Identifier: BSD-3-Clause
// softmax and log_softmax, forwards and backwards.
#include "kernels/families/softmax.h"
#include "kernels/args/normalization.h"

#ifdef PUONE_SIMT
#include "kernels/simt/softmax.h"
#else
#include "kernels/host/softmax.h"
#endif

namespace puone::kernels::PUONE_ISA {
PUONE_KERNEL(softmax) = softmaxForward;
PUONE_KERNEL(softmax_backward) = softmaxBackward;

} // namespace puone::kernels::PUONE_ISA
