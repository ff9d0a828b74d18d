// SPDX-License-Identifier: BSD-3-Clause
// A stand-in for cuBLAS: the functions of drivers/cuda/cublas.h. Sizes and leading dimensions that
// cuBLAS refuses, it refuses too; so is a product without a stream, a workspace and a math mode
// set, which the driver promises.
#include "fake_cublas.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>

#include "drivers/cuda/cublas.h"
#include "fake_product.h"

using namespace puone::cuda;
using fake::Factor;
using fake::Product;
using fake::services;

namespace puone::cuda {

struct CublasContext {
  std::atomic<std::thread::id> user;
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;
  int math_mode = -1;
};

} // namespace puone::cuda

namespace {

std::atomic<size_t> products{0};
std::atomic<bool> refuses{false};
std::atomic<size_t> handles{0};

/// From the choice of a stream to the product a handle is of one thread.
void requireUser(CublasHandle handle) {
  if (handle->user == std::this_thread::get_id()) return;
  std::fputs("cublas: two threads use a handle at the same time\n", stderr);
  std::abort();
}

struct Types {
  cudaDataType a, b, c;
  CublasCompute sum;
};

CublasStatus queue(
    CublasHandle handle,
    const Product& product,
    const void* alpha,
    const void* beta,
    const Types& types) {
  requireUser(handle);
  const bool ready = handle->stream != nullptr && handle->workspace != nullptr &&
                     handle->math_mode == (kCublasDefaultMath | kCublasExactPartialSums);
  if (!ready || services == nullptr) return CublasStatus::kNotInitialized;
  if (refuses || types.a != types.b || types.a != types.c) return CublasStatus::kNotSupported;
  if (!isLegal(product)) return CublasStatus::kInvalidValue;
  std::function<void()> body = fake::work(product, alpha, beta, types.a, types.sum);
  if (!body) return CublasStatus::kNotSupported;
  if (services.load()->enqueue(handle->stream, std::move(body)) != cudaSuccess) {
    return CublasStatus::kExecutionFailed;
  }
  ++products;
  return CublasStatus::kSuccess;
}

} // namespace

#define PUBLIC __attribute__((visibility("default")))

extern "C" {

PUBLIC void standinLibrary(const StandinServices* given) {
  services = given;
}

PUBLIC size_t fakeCublasProducts() {
  return products;
}

PUBLIC size_t fakeCublasHandles() {
  return handles;
}

PUBLIC void fakeCublasRefuse() {
  refuses = true;
}

PUBLIC CublasStatus cublasCreate_v2(CublasHandle* out) {
  *out = new (std::nothrow) puone::cuda::CublasContext;
  ++handles;
  return *out != nullptr ? CublasStatus::kSuccess : CublasStatus::kAllocFailed;
}

PUBLIC CublasStatus cublasSetStream_v2(CublasHandle handle, cudaStream_t stream) {
  handle->user = std::this_thread::get_id();
  handle->stream = stream;
  handle->workspace = nullptr; // cuBLAS goes back to its own
  return CublasStatus::kSuccess;
}

PUBLIC CublasStatus cublasSetWorkspace_v2(CublasHandle handle, void* workspace, size_t) {
  // Long enough for another thread that has this handle to come here, too.
  std::this_thread::sleep_for(std::chrono::microseconds(100));
  requireUser(handle);
  handle->workspace = workspace;
  return CublasStatus::kSuccess;
}

PUBLIC CublasStatus cublasSetMathMode(CublasHandle handle, int mode) {
  handle->math_mode = mode;
  return CublasStatus::kSuccess;
}

PUBLIC CublasStatus cublasGemmEx(
    CublasHandle handle,
    CublasOperation a_operation,
    CublasOperation b_operation,
    int m,
    int n,
    int k,
    const void* alpha,
    const void* a,
    cudaDataType a_type,
    int a_leading,
    const void* b,
    cudaDataType b_type,
    int b_leading,
    const void* beta,
    void* c,
    cudaDataType c_type,
    int c_leading,
    CublasCompute sum,
    int /*algorithm*/) {
  const Factor left{a_operation, a, a_leading, 0}, right{b_operation, b, b_leading, 0};
  const Product product{m, n, k, 1, left, right, c, c_leading, 0};
  return queue(handle, product, alpha, beta, {a_type, b_type, c_type, sum});
}

PUBLIC CublasStatus cublasGemmStridedBatchedEx(
    CublasHandle handle,
    CublasOperation a_operation,
    CublasOperation b_operation,
    int m,
    int n,
    int k,
    const void* alpha,
    const void* a,
    cudaDataType a_type,
    int a_leading,
    long long a_stride,
    const void* b,
    cudaDataType b_type,
    int b_leading,
    long long b_stride,
    const void* beta,
    void* c,
    cudaDataType c_type,
    int c_leading,
    long long c_stride,
    int batch,
    CublasCompute sum,
    int /*algorithm*/) {
  const Factor left{a_operation, a, a_leading, a_stride};
  const Factor right{b_operation, b, b_leading, b_stride};
  const Product product{m, n, k, batch, left, right, c, c_leading, c_stride};
  return queue(handle, product, alpha, beta, {a_type, b_type, c_type, sum});
}

} // extern "C"
