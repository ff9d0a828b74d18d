// SPDX-License-Identifier: BSD-3-Clause
// What the flavours of the matrix product share.
#pragma once

#include <type_traits>
#include <utility>

#include "kernels/args/matmul.h"
#include "kernels/isa.h"
#include "kernels/launch.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {

/// Kernel "gemm". Other families call it, so that its device code exists only once.
void multiplyMatrices(Launch& launch, const puone_gemm_args& args);

/// Whether negative results become 0.
inline bool isRectified(const puone_gemm_args& args) {
  return args.activation == PUONE_ACTIVATION_RELU;
}

/// Whether `self` is added to the result.
inline bool hasSelf(const puone_gemm_args& args) {
  return isNonzero(args.beta.real) || isNonzero(args.beta.imaginary) || args.beta.integer != 0;
}

/// alpha or beta as a value of the compute type T.
template <class T>
T valueOf(const puone_factor& factor) {
  if constexpr (kIsComplex<T>) {
    using Part = decltype(T::real);
    return {static_cast<Part>(factor.real), static_cast<Part>(factor.imaginary)};
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(factor.real);
  } else {
    return static_cast<T>(factor.integer);
  }
}

inline puone_matrix transposed(puone_matrix matrix) {
  std::swap(matrix.row_stride, matrix.column_stride);
  return matrix;
}

/// The same product the other way round: out^T = b^T a^T.
inline puone_gemm_args transposed(const puone_gemm_args& args) {
  puone_gemm_args result = args;
  std::swap(result.m, result.n);
  result.out = transposed(args.out);
  result.self = transposed(args.self);
  result.a = transposed(args.b);
  result.b = transposed(args.a);
  return result;
}

} // namespace puone::kernels::PUONE_ISA
