// SPDX-License-Identifier: BSD-3-Clause
// Comparisons of elements, and logical operations.
#include "kernels/families/compare.h"
#include "kernels/functors.h"

namespace puone::kernels::PUONE_ISA {
namespace {

PUONE_BINARY(Eq, truth(a == b));
PUONE_BINARY(Ne, truth(!(a == b)));
PUONE_BINARY(Lt, truth(a < b));
PUONE_BINARY(Le, truth(a <= b));
PUONE_BINARY(Gt, truth(a > b));
PUONE_BINARY(Ge, truth(a >= b));
PUONE_BINARY(LogicalAnd, truth(isNonzero(a) && isNonzero(b)));
PUONE_BINARY(LogicalOr, truth(isNonzero(a) || isNonzero(b)));
PUONE_BINARY(LogicalXor, truth(isNonzero(a) != isNonzero(b)));

} // namespace

PUONE_KERNEL(eq) = elementwiseKernel<Eq, Numbers>;
PUONE_KERNEL(ne) = elementwiseKernel<Ne, Numbers>;
PUONE_KERNEL(lt) = elementwiseKernel<Lt, Ordered>;
PUONE_KERNEL(le) = elementwiseKernel<Le, Ordered>;
PUONE_KERNEL(gt) = elementwiseKernel<Gt, Ordered>;
PUONE_KERNEL(ge) = elementwiseKernel<Ge, Ordered>;
PUONE_KERNEL(logical_and) = elementwiseKernel<LogicalAnd, Numbers>;
PUONE_KERNEL(logical_or) = elementwiseKernel<LogicalOr, Numbers>;
PUONE_KERNEL(logical_xor) = elementwiseKernel<LogicalXor, Numbers>;

} // namespace puone::kernels::PUONE_ISA
