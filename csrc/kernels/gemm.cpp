// SPDX-License-Identifier: BSD-3-Clause
// "gemm": matrix products of every dtype, batched, with any strides.
#include "kernels/families/gemm.h"
#include "kernels/args/matmul.h"
#include "kernels/compute.h"

#ifdef PUONE_SIMT
#include "kernels/simt/product.h"
#else
#include "kernels/host/product.h"
#endif

namespace puone::kernels::PUONE_ISA {

void multiplyMatrices(Launch& launch, const puone_gemm_args& args) {
  if (args.m == 0 || args.n == 0 || args.batch == 0) return;
  forComputeType(args.dtype, [&]<class E>(Type<E>) { product<E>(launch, args); });
}

PUONE_KERNEL(gemm) = multiplyMatrices;

} // namespace puone::kernels::PUONE_ISA
