// SPDX-License-Identifier: BSD-3-Clause
// Comparisons of elements and logic on their truth.
#include "kernels/families.h"
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

constexpr Kernel kKernels[] = {
    elementwiseEntry<Eq, Numbers>("eq"),
    elementwiseEntry<Ne, Numbers>("ne"),
    elementwiseEntry<Lt, Ordered>("lt"),
    elementwiseEntry<Le, Ordered>("le"),
    elementwiseEntry<Gt, Ordered>("gt"),
    elementwiseEntry<Ge, Ordered>("ge"),
    elementwiseEntry<LogicalAnd, Numbers>("logical_and"),
    elementwiseEntry<LogicalOr, Numbers>("logical_or"),
    elementwiseEntry<LogicalXor, Numbers>("logical_xor"),
};

} // namespace

std::span<const Kernel> compareKernels() {
  return kKernels;
}

} // namespace puone::kernels::PUONE_ISA
