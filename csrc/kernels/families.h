// SPDX-License-Identifier: BSD-3-Clause
// The tables of kernels, one per family, each at the end of the family's source.
#pragma once

#include <span>

#include "kernels/isa.h"
#include "kernels/kernels.h"

namespace puone::kernels::PUONE_ISA {

std::span<const Kernel> activationKernels();
std::span<const Kernel> ampKernels();
std::span<const Kernel> arithmeticKernels();
std::span<const Kernel> batchNormKernels();
std::span<const Kernel> binaryKernels();
std::span<const Kernel> compareKernels();
std::span<const Kernel> complexKernels();
std::span<const Kernel> convolutionKernels();
std::span<const Kernel> copyKernels();
std::span<const Kernel> cumulativeKernels();
std::span<const Kernel> delayKernels();
std::span<const Kernel> dotKernels();
std::span<const Kernel> embeddingKernels();
std::span<const Kernel> extremesKernels();
std::span<const Kernel> fillKernels();
std::span<const Kernel> foreachKernels();
std::span<const Kernel> fusedOptimizerKernels();
std::span<const Kernel> gemmKernels();
std::span<const Kernel> groupNormKernels();
std::span<const Kernel> indexingKernels();
std::span<const Kernel> lossKernels();
std::span<const Kernel> maskedKernels();
std::span<const Kernel> nllLossKernels();
std::span<const Kernel> orderKernels();
std::span<const Kernel> poolKernels();
std::span<const Kernel> randomKernels();
std::span<const Kernel> reductionKernels();
std::span<const Kernel> resampleKernels();
std::span<const Kernel> samplingKernels();
std::span<const Kernel> searchKernels();
std::span<const Kernel> sequenceKernels();
std::span<const Kernel> shapeKernels();
std::span<const Kernel> softmaxKernels();
std::span<const Kernel> specialKernels();
std::span<const Kernel> ternaryKernels();
std::span<const Kernel> unaryExponentialKernels();
std::span<const Kernel> unarySimpleKernels();
std::span<const Kernel> unaryTrigonometricKernels();

} // namespace puone::kernels::PUONE_ISA
