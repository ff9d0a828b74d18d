// SPDX-License-Identifier: BSD-3-Clause
// A matrix product as vendors' libraries know it: columns are dense. Element (i, j) of a matrix is
// at data[i + j * leading], in elements; so is that of each batch index, `batch_stride` further.
#pragma once

#include <cstdint>

#include "kernels/args.h"

namespace puone::kernels {

enum class Factor {
  kPlain,
  kTransposed,
  kConjugateTransposed
};

struct MatrixFactor {
  const void* data;
  Factor form;
  int64_t leading;
  int64_t batch_stride;
};

/// out = beta * out + alpha * (a @ b) for each of `batch` indices; out is m x n, a m x k in the
/// form that it has in the product. Nothing is read of `out` if beta is 0. Sums of 16-bit floats,
/// and their factors alpha and beta, are floats; those of others are what their elements are.
struct MatrixProduct {
  puone_dtype dtype;
  int64_t m;
  int64_t n;
  int64_t k;
  int64_t batch;
  double alpha[2]; // real, imaginary
  double beta[2];
  MatrixFactor a;
  MatrixFactor b;
  void* out;
  int64_t out_leading;
  int64_t out_batch_stride;
};

} // namespace puone::kernels
