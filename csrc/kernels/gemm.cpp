// SPDX-License-Identifier: BSD-3-Clause
// "gemm": matrix products of every dtype, batched, with any strides.
#include <stdexcept>
#include <type_traits>

#include "kernels/args/matmul.h"
#include "kernels/compute.h"
#include "kernels/families/gemm.h"

#ifdef PUONE_SIMT
#include "kernels/simt/product.h"
#else
#include "kernels/host/product.h"
#endif

namespace puone::kernels::PUONE_ISA {
namespace {

template <class E>
void checkActivation(int32_t activation) {
  constexpr bool kIsReal = std::is_floating_point_v<ComputeValue<E>>;
  if (activation == PUONE_ACTIVATION_NONE) return;
  if (activation == PUONE_ACTIVATION_RELU && kIsReal) return;
  throw std::invalid_argument("gemm has no such activation of this dtype");
}

} // namespace

void multiplyMatrices(Launch& launch, const puone_gemm_args& args) {
  if (args.m == 0 || args.n == 0 || args.batch == 0) return;
  forComputeType(args.dtype, [&]<class E>(Type<E>) {
    checkActivation<E>(args.activation);
    product<E>(launch, args);
  });
}

PUONE_KERNEL(gemm) = multiplyMatrices;

} // namespace puone::kernels::PUONE_ISA
