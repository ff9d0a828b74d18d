// SPDX-License-Identifier: BSD-3-Clause
// Convolutions as matrix products of the weight and of the source seen through a sliding window.
// The latter is never stored: its elements are read in the order that the product needs.
#include <stdexcept>

#include "kernels/args/convolution.h"
#include "kernels/compute.h"
#include "kernels/families/convolution.h"

#ifdef PUONE_SIMT
#include "kernels/simt/convolution.h"
#else
#include "kernels/host/convolution.h"
#endif

namespace puone::kernels::PUONE_ISA {
namespace {

/// Complex numbers are not supported: the caller convolves their parts.
template <class Body>
void forRealType(int32_t dtype, const Body& body) {
  forComputeType(dtype, [&]<class E>(Type<E> type) {
    if constexpr (kIsComplex<E>) {
      throw std::invalid_argument("convolution has no such dtype");
    } else {
      body(type);
    }
  });
}

void convolution(Launch& launch, const puone_convolution_args& args) {
  forRealType(args.dtype, [&]<class E>(Type<E>) { convolve<E>(launch, args); });
}

void convolutionWeight(Launch& launch, const puone_convolution_weight_args& args) {
  forRealType(args.dtype, [&]<class E>(Type<E>) { gatherWeightGradient<E>(launch, args); });
}

} // namespace

PUONE_KERNEL(convolution) = convolution;
PUONE_KERNEL(convolution_weight) = convolutionWeight;

} // namespace puone::kernels::PUONE_ISA
