// SPDX-License-Identifier: BSD-3-Clause
// Exponentials, logarithms and roots of elements.
#include "kernels/families/unary_exponential.h"
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

} // namespace

PUONE_KERNEL(exp) = elementwiseKernel<Exp, Inexact>;
PUONE_KERNEL(exp2) = elementwiseKernel<Exp2, Inexact>;
PUONE_KERNEL(expm1) = elementwiseKernel<Expm1, Inexact>;
PUONE_KERNEL(log) = elementwiseKernel<Log, Inexact>;
PUONE_KERNEL(log2) = elementwiseKernel<Log2, Inexact>;
PUONE_KERNEL(log10) = elementwiseKernel<Log10, Inexact>;
PUONE_KERNEL(log1p) = elementwiseKernel<Log1p, Inexact>;
PUONE_KERNEL(sqrt) = elementwiseKernel<Sqrt, Inexact>;
PUONE_KERNEL(rsqrt) = elementwiseKernel<Rsqrt, Inexact>;
PUONE_KERNEL(sigmoid) = elementwiseKernel<Sigmoid, Inexact>;

} // namespace puone::kernels::PUONE_ISA
