// SPDX-License-Identifier: BSD-3-Clause
// One optimizer step of many parameters at once.
#include "kernels/families/fused_optimizer.h"
#include "kernels/args/multi_tensor.h"

#ifdef PUONE_SIMT
#include "kernels/simt/fused_optimizer.h"
#else
#include "kernels/host/fused_optimizer.h"
#endif

namespace puone::kernels::PUONE_ISA {
PUONE_KERNEL(fused_adam) = fusedStep<fused::Adam>;
PUONE_KERNEL(fused_sgd) = fusedStep<fused::Sgd>;
PUONE_KERNEL(fused_adagrad) = fusedStep<fused::Adagrad>;

} // namespace puone::kernels::PUONE_ISA
