// SPDX-License-Identifier: BSD-3-Clause
// Batch norm.
#include "kernels/batch_norm.h"
#include "kernels/args/normalization.h"
#include "kernels/families/batch_norm.h"
#include "kernels/map.h"

#ifdef PUONE_SIMT
#include "kernels/simt/batch_norm.h"
#else
#include "kernels/host/batch_norm.h"
#endif

namespace puone::kernels::PUONE_ISA {
namespace {

template <class Norm>
struct Scale {
  PUONE_DEVICE void operator()(int64_t c) const {
    norm.scale(c);
  }
  Norm norm;
};

void batchNormScale(Launch& launch, const puone_batch_norm_args& args) {
  withNorm<BatchNorm>(launch, args, [&]<class Norm>(const Norm& norm) {
    map(launch, norm.channels, Scale<Norm>{norm});
  });
}

} // namespace

PUONE_KERNEL(batch_norm_scale) = batchNormScale;
PUONE_KERNEL(batch_norm_apply) = batchNormApply;
PUONE_KERNEL(batch_norm_backward_sums) = batchNormBackwardSums;
PUONE_KERNEL(batch_norm_backward) = batchNormBackward;

} // namespace puone::kernels::PUONE_ISA
