// SPDX-License-Identifier: BSD-3-Clause
// Group norm and, as its special case, layer norm.
#include "kernels/families/group_norm.h"
#include "kernels/args/normalization.h"

#ifdef PUONE_SIMT
#include "kernels/simt/group_norm.h"
#else
#include "kernels/host/group_norm.h"
#endif

namespace puone::kernels::PUONE_ISA {
PUONE_KERNEL(group_norm) = groupNormForward;
PUONE_KERNEL(group_norm_backward) = groupNormBackward;

} // namespace puone::kernels::PUONE_ISA
