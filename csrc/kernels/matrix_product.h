// SPDX-License-Identifier: BSD-3-Clause
// A matrix product in the form of vendors' libraries: columns are dense. Element (i, j) of the
// matrix of batch index b is data[b * batch_stride + i + j * leading].
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

/// out = beta * out + alpha * (a @ b) + bias for each of `batch` indices; out is m x n, a (after
/// its transposition, if any) is m x k. `out` is not read if beta is 0. For 16-bit floats the sums,
/// alpha and beta are floats; for other types they have the type of the elements. `allow_tf32`:
/// factors of float32 may be rounded to TF32. `bias` has a number for each row of out, NULL: none.
/// `rectified`: 0 takes the place of a result that is less; NaN stays. Results are rounded once.
struct MatrixProduct {
  puone_dtype dtype;
  bool allow_tf32;
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
  const void* bias = nullptr;
  bool rectified = false;

  bool hasEpilogue() const {
    return bias != nullptr || rectified;
  }
};

} // namespace puone::kernels
