// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/cuda/blas.h"

#include <cstdlib>

#include "drivers/cuda/blas_arguments.h"
#include "drivers/cuda/status.h"

namespace puone::cuda {
namespace {

using kernels::MatrixProduct;

CublasStatus multiplyOne(const Cublas& cublas, CublasHandle handle, const MatrixProduct& product) {
  const BlasTypes types = *blasTypes(product);
  const BlasScalar alpha(product.alpha, types.sum), beta(product.beta, types.sum);
  return cublas.multiply(
      handle,
      blasOperation(product.a.form),
      blasOperation(product.b.form),
      static_cast<int>(product.m),
      static_cast<int>(product.n),
      static_cast<int>(product.k),
      alpha.get(),
      product.a.data,
      types.element,
      static_cast<int>(product.a.leading),
      product.b.data,
      types.element,
      static_cast<int>(product.b.leading),
      beta.get(),
      product.out,
      types.element,
      static_cast<int>(product.out_leading),
      types.sum,
      kCublasDefaultAlgorithm);
}

CublasStatus multiplyBatch(
    const Cublas& cublas, CublasHandle handle, const MatrixProduct& product) {
  const BlasTypes types = *blasTypes(product);
  const BlasScalar alpha(product.alpha, types.sum), beta(product.beta, types.sum);
  return cublas.multiplyBatch(
      handle,
      blasOperation(product.a.form),
      blasOperation(product.b.form),
      static_cast<int>(product.m),
      static_cast<int>(product.n),
      static_cast<int>(product.k),
      alpha.get(),
      product.a.data,
      types.element,
      static_cast<int>(product.a.leading),
      product.a.batch_stride,
      product.b.data,
      types.element,
      static_cast<int>(product.b.leading),
      product.b.batch_stride,
      beta.get(),
      product.out,
      types.element,
      static_cast<int>(product.out_leading),
      product.out_batch_stride,
      static_cast<int>(product.batch),
      types.sum,
      kCublasDefaultAlgorithm);
}

CublasContext* createHandle() {
  const Cublas* const cublas = Blas::library();
  if (cublas == nullptr) return nullptr;
  const CublasHandle handle = createNative("cublasCreate", cublas->create);
  if (handle == nullptr) return nullptr;
  checkBlas(
      "cublasSetMathMode",
      cublas->setMathMode(handle, kCublasDefaultMath | kCublasExactPartialSums));
  return handle;
}

} // namespace

const Cublas* Blas::library() {
  static const Cublas* const found = loadCublas(std::getenv("PUONE_CUDA_BLAS"));
  return found;
}

Blas::Blas() : handles_(createHandle) {}

bool Blas::takes(const MatrixProduct& product) {
  return blasTypes(product) && handles_.isUsable();
}

bool Blas::multiply(
    const MatrixProduct& product, cudaStream_t stream, void* workspace, size_t bytes) {
  const Cublas& cublas = *library();
  const LibraryHandles<CublasContext>::Taken taken(handles_);
  const CublasHandle handle = taken.get();
  if (handle == nullptr) return false;
  checkBlas("cublasSetStream", cublas.setStream(handle, stream)); // forgets the workspace
  checkBlas("cublasSetWorkspace", cublas.setWorkspace(handle, workspace, bytes));
  // The library has more algorithms for a single product than for a batch of one.
  const bool alone = product.batch == 1;
  const CublasStatus status =
      alone ? multiplyOne(cublas, handle, product) : multiplyBatch(cublas, handle, product);
  if (isRefusal(status)) return false;
  checkBlas(alone ? "cublasGemmEx" : "cublasGemmStridedBatchedEx", status);
  return true;
}

} // namespace puone::cuda
