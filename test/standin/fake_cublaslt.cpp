// SPDX-License-Identifier: BSD-3-Clause
// A stand-in for cuBLASLt: the functions of drivers/cuda/cublaslt.h. It has an algorithm for every
// product of real numbers whose matrices and bias are aligned to 16 bytes. What the library leaves
// undefined ends the process with a line that starts with "cublaslt:": an algorithm of another
// product, memory that is less aligned than was said, a workspace that is too small, an operation
// that two threads use at once.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>

#include "drivers/cuda/cublaslt.h"
#include "fake_cublas.h"
#include "fake_product.h"

using namespace puone::cuda;
using fake::Product;
using fake::services;

namespace puone::cuda {

struct CublasLtContext {};

struct CublasLtMatmulDesc {
  CublasCompute sum;
  cudaDataType scalar;
  CublasOperation a = CublasOperation::kNone;
  CublasOperation b = CublasOperation::kNone;
  uint32_t epilogue = 1; // none
  const void* bias = nullptr;
  std::atomic<std::thread::id> user; // who has set the bias
};

struct CublasLtMatrixLayout {
  cudaDataType type;
  uint64_t rows;
  uint64_t columns;
  int64_t leading;
  int32_t batch = 1;
  int64_t stride = 0;
};

struct CublasLtMatmulPreference {
  uint64_t workspace = 0;
  uint32_t reductions = ~0u;
  std::array<uint32_t, 4> alignments{256, 256, 256, 256};
};

} // namespace puone::cuda

namespace {

constexpr auto kRelu = static_cast<uint32_t>(CublasLtEpilogue::kRelu);
constexpr auto kBias = static_cast<uint32_t>(CublasLtEpilogue::kBias);
constexpr uint64_t kWorkspace = 1 << 16; // of each algorithm, bytes
constexpr uint64_t kLeastAlignment = 16;

std::atomic<size_t> products{0};
std::atomic<size_t> plans{0};
std::atomic<bool> refuses{false};

[[noreturn]] void undefined(const char* what) {
  std::fprintf(stderr, "cublaslt: %s\n", what);
  std::abort();
}

template <class Value>
void read(Value& value, const void* from, size_t bytes) {
  if (bytes != sizeof value) undefined("an attribute has another size");
  std::memcpy(&value, from, bytes);
}

uint64_t mixed(uint64_t key, uint64_t value) {
  return (key ^ value) * 0x9e3779b97f4a7c15u + (key >> 29);
}

/// Of all that an algorithm is chosen for.
uint64_t keyOf(
    const CublasLtMatmulDesc& operation,
    std::initializer_list<const CublasLtMatrixLayout*> layouts) {
  uint64_t key = 1;
  for (const uint64_t value :
       {static_cast<uint64_t>(operation.sum),
        static_cast<uint64_t>(operation.a),
        static_cast<uint64_t>(operation.b),
        uint64_t{operation.epilogue}}) {
    key = mixed(key, value);
  }
  for (const auto* layout : layouts) {
    for (const uint64_t value :
         {static_cast<uint64_t>(layout->type),
          layout->rows,
          layout->columns,
          static_cast<uint64_t>(layout->leading),
          static_cast<uint64_t>(layout->batch),
          static_cast<uint64_t>(layout->stride)}) {
      key = mixed(key, value);
    }
  }
  return key;
}

uint64_t alignmentOf(const void* data) {
  const auto bits = reinterpret_cast<uintptr_t>(data) | 256;
  return bits & -bits;
}

/// The product without its memory; nothing if the layouts contradict each other.
std::optional<Product> productOf(
    const CublasLtMatmulDesc& operation,
    const CublasLtMatrixLayout& a,
    const CublasLtMatrixLayout& b,
    const CublasLtMatrixLayout& d) {
  const bool a_plain = operation.a == CublasOperation::kNone;
  const bool b_plain = operation.b == CublasOperation::kNone;
  const uint64_t k = a_plain ? a.columns : a.rows;
  const bool fits =
      (a_plain ? a.rows : a.columns) == d.rows && (b_plain ? b.rows : b.columns) == k &&
      (b_plain ? b.columns : b.rows) == d.columns && a.batch == d.batch && b.batch == d.batch;
  if (!fits) return std::nullopt;
  const Product product{
      static_cast<int>(d.rows),
      static_cast<int>(d.columns),
      static_cast<int>(k),
      d.batch,
      {operation.a, nullptr, static_cast<int>(a.leading), a.stride},
      {operation.b, nullptr, static_cast<int>(b.leading), b.stride},
      nullptr,
      static_cast<int>(d.leading),
      d.stride,
      nullptr,
      (operation.epilogue & kRelu) != 0};
  return isLegal(product) ? std::optional(product) : std::nullopt;
}

bool hasTypes(
    const CublasLtMatmulDesc& operation,
    const CublasLtMatrixLayout& a,
    const CublasLtMatrixLayout& b,
    const CublasLtMatrixLayout& d) {
  const bool is_double = operation.sum == CublasCompute::kDouble;
  const bool is_real = d.type != CUDA_C_32F && d.type != CUDA_C_64F;
  return a.type == d.type && b.type == d.type && is_real && (d.type == CUDA_R_64F) == is_double &&
         operation.scalar == (is_double ? CUDA_R_64F : CUDA_R_32F) &&
         (operation.epilogue & ~(kRelu | kBias)) == 0 && operation.epilogue != 0;
}

} // namespace

#define PUBLIC __attribute__((visibility("default")))

extern "C" {

PUBLIC size_t fakeCublasLtProducts() {
  return products;
}

PUBLIC size_t fakeCublasLtPlans() {
  return plans;
}

PUBLIC void fakeCublasLtRefuse() {
  refuses = true;
}

PUBLIC CublasStatus cublasLtCreate(CublasLtHandle* out) {
  *out = new CublasLtContext;
  return CublasStatus::kSuccess;
}

PUBLIC CublasStatus
cublasLtMatmulDescCreate(CublasLtOperation* out, CublasCompute sum, cudaDataType scalar) {
  *out = new CublasLtMatmulDesc{.sum = sum, .scalar = scalar, .user = {}};
  return CublasStatus::kSuccess;
}

PUBLIC CublasStatus cublasLtMatmulDescDestroy(CublasLtOperation operation) {
  delete operation;
  return CublasStatus::kSuccess;
}

PUBLIC CublasStatus cublasLtMatmulDescSetAttribute(
    CublasLtOperation operation,
    CublasLtOperationAttribute attribute,
    const void* value,
    size_t bytes) {
  switch (attribute) {
    case CublasLtOperationAttribute::kTransposedA:
      read(operation->a, value, bytes);
      break;
    case CublasLtOperationAttribute::kTransposedB:
      read(operation->b, value, bytes);
      break;
    case CublasLtOperationAttribute::kEpilogue:
      read(operation->epilogue, value, bytes);
      break;
    case CublasLtOperationAttribute::kBias:
      read(operation->bias, value, bytes);
      operation->user = std::this_thread::get_id();
      break;
    default:
      return CublasStatus::kInvalidValue;
  }
  return CublasStatus::kSuccess;
}

PUBLIC CublasStatus cublasLtMatrixLayoutCreate(
    CublasLtLayout* out, cudaDataType type, uint64_t rows, uint64_t columns, int64_t leading) {
  *out = new CublasLtMatrixLayout{type, rows, columns, leading};
  return CublasStatus::kSuccess;
}

PUBLIC CublasStatus cublasLtMatrixLayoutDestroy(CublasLtLayout layout) {
  delete layout;
  return CublasStatus::kSuccess;
}

PUBLIC CublasStatus cublasLtMatrixLayoutSetAttribute(
    CublasLtLayout layout, CublasLtLayoutAttribute attribute, const void* value, size_t bytes) {
  switch (attribute) {
    case CublasLtLayoutAttribute::kBatch:
      read(layout->batch, value, bytes);
      break;
    case CublasLtLayoutAttribute::kBatchStride:
      read(layout->stride, value, bytes);
      break;
    default:
      return CublasStatus::kInvalidValue;
  }
  return CublasStatus::kSuccess;
}

PUBLIC CublasStatus cublasLtMatmulPreferenceCreate(CublasLtPreference* out) {
  *out = new CublasLtMatmulPreference;
  return CublasStatus::kSuccess;
}

PUBLIC CublasStatus cublasLtMatmulPreferenceDestroy(CublasLtPreference preference) {
  delete preference;
  return CublasStatus::kSuccess;
}

PUBLIC CublasStatus cublasLtMatmulPreferenceSetAttribute(
    CublasLtPreference preference,
    CublasLtPreferenceAttribute attribute,
    const void* value,
    size_t bytes) {
  switch (attribute) {
    case CublasLtPreferenceAttribute::kWorkspace:
      read(preference->workspace, value, bytes);
      break;
    case CublasLtPreferenceAttribute::kReductions:
      read(preference->reductions, value, bytes);
      break;
    case CublasLtPreferenceAttribute::kAlignmentA:
    case CublasLtPreferenceAttribute::kAlignmentB:
    case CublasLtPreferenceAttribute::kAlignmentC:
    case CublasLtPreferenceAttribute::kAlignmentD:
      read(
          preference->alignments
              [static_cast<int>(attribute) -
               static_cast<int>(CublasLtPreferenceAttribute::kAlignmentA)],
          value,
          bytes);
      break;
    default:
      return CublasStatus::kInvalidValue;
  }
  return CublasStatus::kSuccess;
}

PUBLIC CublasStatus cublasLtMatmulAlgoGetHeuristic(
    CublasLtHandle /*handle*/,
    CublasLtOperation operation,
    CublasLtLayout a,
    CublasLtLayout b,
    CublasLtLayout c,
    CublasLtLayout d,
    CublasLtPreference preference,
    int wanted,
    CublasLtChoice* choices,
    int* found) {
  ++plans;
  *found = 0;
  if (wanted < 1 || !productOf(*operation, *a, *b, *d) ||
      keyOf(*operation, {c}) != keyOf(*operation, {d})) {
    return CublasStatus::kInvalidValue;
  }
  if (preference->reductions != kCublasLtExactPartialSums) {
    undefined("partial sums may be rounded, or added up in any order");
  }
  const bool has_bias = (operation->epilogue & kBias) != 0;
  if (has_bias && operation->bias == nullptr) undefined("the bias has no alignment yet");
  uint64_t alignment = has_bias ? alignmentOf(operation->bias) : 256;
  for (const uint32_t of_matrix : preference->alignments) {
    alignment = std::min<uint64_t>(alignment, of_matrix);
  }
  if (refuses || !hasTypes(*operation, *a, *b, *d) || alignment < kLeastAlignment ||
      preference->workspace < kWorkspace) {
    return CublasStatus::kNotSupported;
  }
  CublasLtChoice& choice = *choices;
  choice = {};
  choice.algorithm.data[0] = keyOf(*operation, {a, b, c, d});
  choice.algorithm.data[1] = alignment;
  choice.workspace = kWorkspace;
  choice.status = CublasStatus::kSuccess;
  *found = 1;
  return CublasStatus::kSuccess;
}

PUBLIC CublasStatus cublasLtMatmul(
    CublasLtHandle /*handle*/,
    CublasLtOperation operation,
    const void* alpha,
    const void* a,
    CublasLtLayout a_layout,
    const void* b,
    CublasLtLayout b_layout,
    const void* beta,
    const void* c,
    CublasLtLayout c_layout,
    void* d,
    CublasLtLayout d_layout,
    const CublasLtAlgorithm* algorithm,
    void* workspace,
    size_t workspace_bytes,
    cudaStream_t stream) {
  const bool has_bias = (operation->epilogue & kBias) != 0;
  // Long enough for another thread that has this operation to set its bias.
  std::this_thread::sleep_for(std::chrono::microseconds(100));
  if (has_bias && operation->user != std::this_thread::get_id()) {
    undefined("two threads use an operation at the same time");
  }
  if (has_bias && operation->bias == d) undefined("the bias is the result");
  if (algorithm->data[0] != keyOf(*operation, {a_layout, b_layout, c_layout, d_layout})) {
    undefined("the algorithm is that of another product");
  }
  for (const void* data : {a, b, c, static_cast<const void*>(d), has_bias ? operation->bias : d}) {
    if (alignmentOf(data) < algorithm->data[1]) undefined("memory is less aligned than was said");
  }
  if (workspace == nullptr || workspace_bytes < kWorkspace ||
      alignmentOf(workspace) < kCublasLtAlignment) {
    undefined("the workspace is too small or not aligned");
  }
  if (stream == nullptr || services == nullptr) return CublasStatus::kNotInitialized;
  if (c != d) return CublasStatus::kNotSupported;
  Product product = *productOf(*operation, *a_layout, *b_layout, *d_layout);
  product.a.data = a;
  product.b.data = b;
  product.c = d;
  product.bias = has_bias ? operation->bias : nullptr;
  auto body = fake::work(product, alpha, beta, d_layout->type, operation->sum);
  if (!body) return CublasStatus::kNotSupported;
  if (services.load()->enqueue(stream, std::move(body)) != cudaSuccess) {
    return CublasStatus::kExecutionFailed;
  }
  ++products;
  return CublasStatus::kSuccess;
}

} // extern "C"
