// SPDX-License-Identifier: BSD-3-Clause
#include <vector>

#include "kernels/families.h"

namespace puone::kernels::PUONE_ISA {
namespace {

std::vector<Kernel> joined() {
  std::vector<Kernel> all;
  // clang-format off: a line per family
#ifdef PUONE_BASIC_KERNELS
  for (const auto family : {copyKernels(), delayKernels(), fillKernels()}) {
#else
  for (const auto family : {
           activationKernels(),
           ampKernels(),
           arithmeticKernels(),
           batchNormKernels(),
           binaryKernels(),
           compareKernels(),
           complexKernels(),
           convolutionKernels(),
           copyKernels(),
           cumulativeKernels(),
           delayKernels(),
           dotKernels(),
           embeddingKernels(),
           extremesKernels(),
           fillKernels(),
           foreachKernels(),
           fusedOptimizerKernels(),
           gemmKernels(),
           groupNormKernels(),
           indexingKernels(),
           lossKernels(),
           maskedKernels(),
           nllLossKernels(),
           orderKernels(),
           poolKernels(),
           randomKernels(),
           reductionKernels(),
           resampleKernels(),
           samplingKernels(),
           searchKernels(),
           sequenceKernels(),
           shapeKernels(),
           softmaxKernels(),
           specialKernels(),
           ternaryKernels(),
           unaryExponentialKernels(),
           unarySimpleKernels(),
           unaryTrigonometricKernels(),
       }) {
#endif
    // clang-format on
    all.insert(all.end(), family.begin(), family.end());
  }
  return all;
}

} // namespace

std::span<const Kernel> kernels() {
  // Leaked: driver threads may look a kernel up while the process ends.
  static const auto& all = *new std::vector<Kernel>(joined());
  return all;
}

} // namespace puone::kernels::PUONE_ISA
