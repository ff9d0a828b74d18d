// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/cuda/blas_arguments.h"

#include <limits>

#include "drivers/common/error.h"
#include "drivers/cuda/status.h"

namespace puone::cuda {
namespace {

using kernels::MatrixProduct;

std::optional<BlasTypes> typesOf(const MatrixProduct& product) {
  switch (product.dtype) {
    case PUONE_FLOAT16:
      return BlasTypes{CUDA_R_16F, CublasCompute::kFloat};
    case PUONE_BFLOAT16:
      return BlasTypes{CUDA_R_16BF, CublasCompute::kFloat};
    case PUONE_FLOAT32:
      return BlasTypes{
          CUDA_R_32F, product.allow_tf32 ? CublasCompute::kFloatOfTf32 : CublasCompute::kFloat};
    case PUONE_FLOAT64:
      return BlasTypes{CUDA_R_64F, CublasCompute::kDouble};
    case PUONE_COMPLEX64:
      return BlasTypes{CUDA_C_32F, CublasCompute::kFloat};
    case PUONE_COMPLEX128:
      return BlasTypes{CUDA_C_64F, CublasCompute::kDouble};
    default:
      return std::nullopt;
  }
}

bool hasInts(const MatrixProduct& product) {
  for (const int64_t length :
       {product.m,
        product.n,
        product.k,
        product.batch,
        product.a.leading,
        product.b.leading,
        product.out_leading}) {
    if (length > std::numeric_limits<int>::max()) return false;
  }
  return true;
}

} // namespace

bool BlasTypes::isReal() const {
  return element != CUDA_C_32F && element != CUDA_C_64F;
}

cudaDataType BlasTypes::scalar() const {
  if (!isReal()) return element;
  return sum == CublasCompute::kDouble ? CUDA_R_64F : CUDA_R_32F;
}

std::optional<BlasTypes> blasTypes(const MatrixProduct& product) {
  return hasInts(product) ? typesOf(product) : std::nullopt;
}

CublasOperation blasOperation(kernels::Factor form) {
  switch (form) {
    case kernels::Factor::kTransposed:
      return CublasOperation::kTransposed;
    case kernels::Factor::kConjugateTransposed:
      return CublasOperation::kConjugateTransposed;
    default:
      return CublasOperation::kNone;
  }
}

void checkBlas(const char* call, CublasStatus status) {
  if (status == CublasStatus::kSuccess) return;
  check(call, cudaGetLastError()); // if it is CUDA that failed, that says more
  const auto kind = status == CublasStatus::kAllocFailed ? PUONE_OUT_OF_MEMORY : PUONE_INTERNAL;
  fail(kind, "%s: cuBLAS status %d", call, static_cast<int>(status));
}

bool isRefusal(CublasStatus status) {
  return status == CublasStatus::kNotSupported || status == CublasStatus::kArchMismatch;
}

} // namespace puone::cuda
