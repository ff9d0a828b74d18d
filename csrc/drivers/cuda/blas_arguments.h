// SPDX-License-Identifier: BSD-3-Clause
// The arguments of a matrix product as cuBLAS and cuBLASLt take them.
#pragma once

#include <library_types.h>

#include <optional>

#include "drivers/cuda/cublas.h"
#include "kernels/matrix_product.h"

namespace puone::cuda {

struct BlasTypes {
  cudaDataType element;
  CublasCompute sum;

  bool isReal() const;
  /// Of alpha and beta.
  cudaDataType scalar() const;
};

/// Nothing where the libraries have no such product: of integers, or with a length that is no int.
std::optional<BlasTypes> blasTypes(const kernels::MatrixProduct& product);

CublasOperation blasOperation(kernels::Factor form);

/// A number as the libraries read it: a sum's type, real or complex. A complex one has the
/// alignment of cuDoubleComplex, which they rely on.
class BlasScalar {
 public:
  BlasScalar(const double (&value)[2], CublasCompute sum)
      : floats_{static_cast<float>(value[0]), static_cast<float>(value[1])},
        doubles_{value[0], value[1]},
        is_float_(sum != CublasCompute::kDouble) {}

  const void* get() const {
    return is_float_ ? static_cast<const void*>(floats_) : doubles_;
  }

 private:
  alignas(16) float floats_[2];
  alignas(16) double doubles_[2];
  bool is_float_;
};

/// Throws an Error unless `status`, the result of `call`, is success.
void checkBlas(const char* call, CublasStatus status);

/// Whether the library has no way of doing what it was asked for.
bool isRefusal(CublasStatus status);

} // namespace puone::cuda
