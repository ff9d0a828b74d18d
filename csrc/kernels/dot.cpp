// SPDX-License-Identifier: BSD-3-Clause
// "dot": the sum of the products of two vectors.
#include "kernels/dot.h"

#include "kernels/args/matmul.h"
#include "kernels/compute.h"
#include "kernels/families/dot.h"

namespace puone::kernels::PUONE_ISA {
namespace {

template <class E>
void dotOf(Launch& launch, const puone_dot_args& args) {
  dot(launch, Factors<E>(launch, args), launch.resolve(args.out));
}

void runDot(Launch& launch, const puone_dot_args& args) {
  forComputeType(args.dtype, [&]<class E>(Type<E>) { dotOf<E>(launch, args); });
}

} // namespace

PUONE_KERNEL(dot) = runDot;

} // namespace puone::kernels::PUONE_ISA
