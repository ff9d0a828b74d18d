// SPDX-License-Identifier: BSD-3-Clause
// A stand-in for cuBLAS: the functions of drivers/cuda/cublas.h, with the plainest of loops. Sizes
// and leading dimensions that cuBLAS refuses, it refuses too; so is a product without a stream, a
// workspace and a math mode set, which the driver promises.
#include "fake_cublas.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>

#include "drivers/cuda/cublas.h"
#include "kernels/types.h"
#include "standin.h"

using namespace puone::cuda;
using namespace puone::kernels::PUONE_ISA;

namespace puone::cuda {

struct CublasContext {
  std::atomic<std::thread::id> user;
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;
  int math_mode = -1;
};

} // namespace puone::cuda

namespace {

std::atomic<const StandinServices*> services{nullptr};
std::atomic<size_t> products{0};
std::atomic<bool> refuses{false};
std::atomic<size_t> handles{0};

/// From the choice of a stream to the product a handle is of one thread.
void requireUser(CublasHandle handle) {
  if (handle->user == std::this_thread::get_id()) return;
  std::fputs("cublas: two threads use a handle at the same time\n", stderr);
  std::abort();
}

struct Factor {
  CublasOperation operation;
  const void* data;
  int leading;
  long long stride;
};

struct Product {
  int m, n, k, batch;
  Factor a, b;
  void* c;
  int c_leading;
  long long c_stride;
};

/// A float of which products use the upper 19 bits.
struct Tf32 {
  float value;
};

float toFloat(Tf32 stored) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(stored.value) & ~0x1fffu);
}

template <class Sum, class Storage>
Sum sumOf(Storage value) {
  if constexpr (std::is_same_v<Sum, Storage>) {
    return value;
  } else {
    return toFloat(value);
  }
}

template <class Storage, class Sum>
Storage rounded(Sum value) {
  if constexpr (std::is_same_v<Sum, Storage>) {
    return value;
  } else if constexpr (std::is_same_v<Storage, Tf32>) {
    return {value};
  } else {
    return fromFloat<Storage>(value);
  }
}

template <class Sum>
Sum conjugate(Sum value) {
  if constexpr (std::is_floating_point_v<Sum>) {
    return value;
  } else {
    return std::conj(value);
  }
}

template <class Sum, class Storage>
Sum element(const Factor& factor, int batch, int row, int column) {
  const auto* data = static_cast<const Storage*>(factor.data) + batch * factor.stride;
  const auto at = [&](int i, int j) {
    return sumOf<Sum>(data[i + static_cast<int64_t>(j) * factor.leading]);
  };
  if (factor.operation == CublasOperation::kNone) return at(row, column);
  const Sum value = at(column, row);
  return factor.operation == CublasOperation::kTransposed ? value : conjugate(value);
}

/// As the library's documentation has it, a and b are not read if alpha is 0, nor c if beta is.
template <class Sum, class Storage>
void run(const Product& product, Sum alpha, Sum beta) {
  for (int batch = 0; batch < product.batch; ++batch) {
    for (int j = 0; j < product.n; ++j) {
      Storage* const column = static_cast<Storage*>(product.c) + batch * product.c_stride +
                              static_cast<int64_t>(j) * product.c_leading;
      for (int i = 0; i < product.m; ++i) {
        Sum sum{};
        for (int p = 0; alpha != Sum{} && p < product.k; ++p) {
          sum += element<Sum, Storage>(product.a, batch, i, p) *
                 element<Sum, Storage>(product.b, batch, p, j);
        }
        sum *= alpha;
        if (beta != Sum{}) sum += beta * sumOf<Sum>(column[i]);
        column[i] = rounded<Storage>(sum);
      }
      services.load()->written(column, product.m * sizeof(Storage));
    }
  }
}

/// cuBLAS reads complex numbers with instructions for aligned ones, and crashes on others.
template <class Sum>
void requireAligned(const void* number) {
  if (reinterpret_cast<uintptr_t>(number) % sizeof(Sum) == 0) return;
  std::fprintf(stderr, "cublas: alpha or beta is not aligned to %zu bytes\n", sizeof(Sum));
  std::abort();
}

template <class Sum, class Storage>
std::function<void()> work(const Product& product, const void* alpha, const void* beta) {
  requireAligned<Sum>(alpha);
  requireAligned<Sum>(beta);
  return [product, a = *static_cast<const Sum*>(alpha), b = *static_cast<const Sum*>(beta)] {
    run<Sum, Storage>(product, a, b);
  };
}

/// Nothing for types that cuBLAS does not combine.
std::function<void()> work(
    const Product& product,
    const void* alpha,
    const void* beta,
    cudaDataType type,
    CublasCompute sum) {
  if (sum == CublasCompute::kDouble) {
    if (type == CUDA_R_64F) return work<double, double>(product, alpha, beta);
    if (type != CUDA_C_64F) return {};
    return work<std::complex<double>, std::complex<double>>(product, alpha, beta);
  }
  if (sum == CublasCompute::kFloatOfTf32) {
    if (type != CUDA_R_32F) return {};
    return work<float, Tf32>(product, alpha, beta);
  }
  if (type == CUDA_R_32F) return work<float, float>(product, alpha, beta);
  if (type == CUDA_R_16F) return work<float, Half>(product, alpha, beta);
  if (type == CUDA_R_16BF) return work<float, BFloat16>(product, alpha, beta);
  if (type != CUDA_C_32F) return {};
  return work<std::complex<float>, std::complex<float>>(product, alpha, beta);
}

bool isLegal(const Factor& factor, int rows, int columns) {
  const int length = factor.operation == CublasOperation::kNone ? rows : columns;
  return factor.leading >= std::max(1, length);
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
  const auto [m, n, k, batch, a, b, c, c_leading, c_stride] = product;
  if (m < 0 || n < 0 || k < 0 || batch < 0 || c_leading < std::max(1, m) || !isLegal(a, m, k) ||
      !isLegal(b, k, n)) {
    return CublasStatus::kInvalidValue;
  }
  std::function<void()> body = work(product, alpha, beta, types.a, types.sum);
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
