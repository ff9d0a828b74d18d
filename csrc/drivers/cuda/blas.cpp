// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/cuda/blas.h"

#include <array>
#include <cstdlib>
#include <limits>
#include <optional>

#include "drivers/common/error.h"
#include "drivers/cuda/status.h"

namespace puone::cuda {
namespace {

using kernels::Factor;
using kernels::MatrixFactor;
using kernels::MatrixProduct;

struct Types {
  cudaDataType element;
  CublasCompute sum;
};

std::optional<Types> typesOf(const MatrixProduct& product) {
  switch (product.dtype) {
    case PUONE_FLOAT16:
      return Types{CUDA_R_16F, CublasCompute::kFloat};
    case PUONE_BFLOAT16:
      return Types{CUDA_R_16BF, CublasCompute::kFloat};
    case PUONE_FLOAT32:
      return Types{
          CUDA_R_32F, product.allow_tf32 ? CublasCompute::kFloatOfTf32 : CublasCompute::kFloat};
    case PUONE_FLOAT64:
      return Types{CUDA_R_64F, CublasCompute::kDouble};
    case PUONE_COMPLEX64:
      return Types{CUDA_C_32F, CublasCompute::kFloat};
    case PUONE_COMPLEX128:
      return Types{CUDA_C_64F, CublasCompute::kDouble};
    default:
      return std::nullopt;
  }
}

CublasOperation operationOf(Factor form) {
  switch (form) {
    case Factor::kTransposed:
      return CublasOperation::kTransposed;
    case Factor::kConjugateTransposed:
      return CublasOperation::kConjugateTransposed;
    default:
      return CublasOperation::kNone;
  }
}

/// A number as cuBLAS reads it: a sum's type, real or complex. A complex one has the alignment of
/// cuDoubleComplex, which cuBLAS relies on.
class Scalar {
 public:
  Scalar(const double (&value)[2], CublasCompute sum)
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

bool isInt(int64_t value) {
  return value <= std::numeric_limits<int>::max();
}

void checkBlas(const char* call, CublasStatus status) {
  if (status == CublasStatus::kSuccess) return;
  check(call, cudaGetLastError()); // if it is CUDA that failed, that says more
  const auto kind = status == CublasStatus::kAllocFailed ? PUONE_OUT_OF_MEMORY : PUONE_INTERNAL;
  fail(kind, "%s: cuBLAS status %d", call, static_cast<int>(status));
}

CublasStatus multiplyOne(const Cublas& cublas, CublasHandle handle, const MatrixProduct& product) {
  const Types types = *typesOf(product);
  const Scalar alpha(product.alpha, types.sum), beta(product.beta, types.sum);
  return cublas.multiply(
      handle,
      operationOf(product.a.form),
      operationOf(product.b.form),
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
  const Types types = *typesOf(product);
  const Scalar alpha(product.alpha, types.sum), beta(product.beta, types.sum);
  return cublas.multiplyBatch(
      handle,
      operationOf(product.a.form),
      operationOf(product.b.form),
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

/// NULL where the library is too new for the driver, or does not know the device: there is none
/// then.
CublasHandle createHandle() {
  const Cublas* const cublas = Blas::library();
  CublasHandle handle = nullptr;
  if (cublas == nullptr) return nullptr;
  if (cublas->create(&handle) != CublasStatus::kSuccess) {
    note("cublasCreate", cudaGetLastError());
    return nullptr;
  }
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

Blas::Taken::Taken(Blas& of) : of_(of) {
  std::unique_lock guard(of.mutex_);
  if (of.idle_.empty() && !of.has_all_) {
    guard.unlock();
    handle_ = createHandle();
    guard.lock();
    if (handle_ != nullptr) {
      of.idle_.reserve(++of.made_);
      return;
    }
    of.has_all_ = true;
  }
  if (of.made_ == 0) return;
  of.returned_.wait(guard, [&] { return !of.idle_.empty(); });
  handle_ = of.idle_.back();
  of.idle_.pop_back();
}

Blas::Taken::~Taken() {
  if (handle_ == nullptr) return;
  {
    const std::lock_guard guard(of_.mutex_);
    of_.idle_.push_back(handle_);
  }
  of_.returned_.notify_one();
}

bool Blas::isUsable() {
  {
    const std::lock_guard guard(mutex_);
    if (made_ > 0) return true;
  }
  return Taken(*this).get() != nullptr;
}

bool Blas::takes(const MatrixProduct& product) {
  if (!typesOf(product)) return false;
  for (const int64_t length :
       {product.m,
        product.n,
        product.k,
        product.batch,
        product.a.leading,
        product.b.leading,
        product.out_leading}) {
    if (!isInt(length)) return false;
  }
  return isUsable();
}

bool Blas::multiply(
    const MatrixProduct& product, cudaStream_t stream, void* workspace, size_t bytes) {
  const Cublas& cublas = *library();
  const Taken taken(*this);
  const CublasHandle handle = taken.get();
  if (handle == nullptr) return false;
  checkBlas("cublasSetStream", cublas.setStream(handle, stream)); // forgets the workspace
  checkBlas("cublasSetWorkspace", cublas.setWorkspace(handle, workspace, bytes));
  // The library has more algorithms for a single product than for a batch of one.
  const bool alone = product.batch == 1;
  const CublasStatus status =
      alone ? multiplyOne(cublas, handle, product) : multiplyBatch(cublas, handle, product);
  if (status == CublasStatus::kNotSupported || status == CublasStatus::kArchMismatch) return false;
  checkBlas(alone ? "cublasGemmEx" : "cublasGemmStridedBatchedEx", status);
  return true;
}

} // namespace puone::cuda
