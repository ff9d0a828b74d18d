// SPDX-License-Identifier: BSD-3-Clause
// Exponentials, logarithms and roots of elements.
#include "kernels/families.h"
#include "kernels/functors.h"

namespace puone::kernels::PUONE_ISA {
namespace {

PUONE_UNARY(Exp, exp(x));
PUONE_UNARY(Exp2, exp2(x));
PUONE_UNARY(Expm1, expm1(x));
PUONE_UNARY(Log, log(x));
PUONE_UNARY(Log2, log2(x));
PUONE_UNARY(Log10, log10(x));
PUONE_UNARY(Log1p, log1p(x));
PUONE_UNARY(Sqrt, sqrt(x));
PUONE_UNARY(Rsqrt, number<T>(1) / sqrt(x));
PUONE_UNARY(Sigmoid, sigmoid(x));

constexpr Kernel kKernels[] = {
    elementwiseEntry<Exp, Inexact>("exp"),
    elementwiseEntry<Exp2, Inexact>("exp2"),
    elementwiseEntry<Expm1, Inexact>("expm1"),
    elementwiseEntry<Log, Inexact>("log"),
    elementwiseEntry<Log2, Inexact>("log2"),
    elementwiseEntry<Log10, Inexact>("log10"),
    elementwiseEntry<Log1p, Inexact>("log1p"),
    elementwiseEntry<Sqrt, Inexact>("sqrt"),
    elementwiseEntry<Rsqrt, Inexact>("rsqrt"),
    elementwiseEntry<Sigmoid, Inexact>("sigmoid"),
};

} // namespace

std::span<const Kernel> unaryExponentialKernels() {
  return kKernels;
}

} // namespace puone::kernels::PUONE_ISA
