// SPDX-License-Identifier: BSD-3-Clause
#include "fake_product.h"

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

#include "fake_elements.h"
#include "kernels/types.h"

using namespace puone::cuda;
using namespace puone::kernels::PUONE_ISA;

namespace fake {

std::atomic<const StandinServices*> services{nullptr};

namespace {

template <class Sum>
Sum conjugate(Sum value) {
  if constexpr (std::is_floating_point_v<Sum>) {
    return value;
  } else {
    return std::conj(value);
  }
}

template <class Sum, class Storage>
Sum element(const Factor& of, int batch, int row, int column) {
  const auto* data = static_cast<const Storage*>(of.data) + batch * of.stride;
  const auto at = [&](int i, int j) {
    return factor<Sum>(data[i + static_cast<int64_t>(j) * of.leading]);
  };
  if (of.operation == CublasOperation::kNone) return at(row, column);
  const Sum value = at(column, row);
  return of.operation == CublasOperation::kTransposed ? value : conjugate(value);
}

/// What is less than 0 becomes 0; NaN stays.
template <class Sum>
Sum rectified(Sum value) {
  if constexpr (std::is_floating_point_v<Sum>) {
    return value < 0 ? Sum{0} : value;
  } else {
    return value;
  }
}

/// As the library's documentation has it, a and b are not read if alpha is 0, nor c if beta is.
template <class Sum, class Storage>
void run(const Product& product, Sum alpha, Sum beta) {
  const auto* const bias = static_cast<const Storage*>(product.bias);
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
        if (beta != Sum{}) sum += beta * addend<Sum>(column[i]);
        if (bias != nullptr) sum += addend<Sum>(bias[i]);
        column[i] = rounded<Storage>(product.rectified ? rectified(sum) : sum);
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

bool isLegal(const Factor& factor, int rows, int columns) {
  const int length = factor.operation == CublasOperation::kNone ? rows : columns;
  return factor.leading >= std::max(1, length);
}

} // namespace

bool isLegal(const Product& product) {
  return product.m >= 0 && product.n >= 0 && product.k >= 0 && product.batch >= 0 &&
         product.c_leading >= std::max(1, product.m) && isLegal(product.a, product.m, product.k) &&
         isLegal(product.b, product.k, product.n);
}

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

} // namespace fake
