// SPDX-License-Identifier: BSD-3-Clause
// Scaled dot product attention, forwards and backwards.
#include "kernels/families/attention.h"
#include "kernels/args/attention.h"

#ifdef PUONE_SIMT
#include "kernels/simt/attention.h"
#else
#include "kernels/host/attention.h"
#endif

namespace puone::kernels::PUONE_ISA {
PUONE_KERNEL(attention) = attentionForward;
PUONE_KERNEL(attention_backward) = attentionBackward;

} // namespace puone::kernels::PUONE_ISA
