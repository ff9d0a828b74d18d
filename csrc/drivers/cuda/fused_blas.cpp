// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/cuda/fused_blas.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "drivers/cuda/blas.h"
#include "drivers/cuda/blas_arguments.h"
#include "drivers/cuda/library_plans.h"
#include "drivers/cuda/status.h"

namespace puone::cuda {
namespace {

using kernels::Factor;
using kernels::MatrixFactor;
using kernels::MatrixProduct;

/// What an address is aligned to, as far as the library asks.
uint32_t alignmentOf(const void* data) {
  const auto bits = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(data)) | kCublasLtAlignment;
  return bits & -bits;
}

/// All that a plan depends on.
using Key = std::array<int64_t, 21>;

Key keyOf(const MatrixProduct& product) {
  const auto& [dtype, tf32, m, n, k, batch, alpha, beta, a, b, out, leading, stride, bias, relu] =
      product;
  return {
      dtype,
      tf32,
      m,
      n,
      k,
      batch,
      beta[0] != 0,
      static_cast<int64_t>(a.form),
      a.leading,
      a.batch_stride,
      alignmentOf(a.data),
      static_cast<int64_t>(b.form),
      b.leading,
      b.batch_stride,
      alignmentOf(b.data),
      leading,
      stride,
      alignmentOf(out),
      bias != nullptr,
      alignmentOf(bias),
      relu};
}

struct OperationDeleter {
  void operator()(CublasLtMatmulDesc* operation) const {
    FusedBlas::library()->destroyOperation(operation);
  }
};
struct LayoutDeleter {
  void operator()(CublasLtMatrixLayout* layout) const {
    FusedBlas::library()->destroyLayout(layout);
  }
};
struct PreferenceDeleter {
  void operator()(CublasLtMatmulPreference* preference) const {
    FusedBlas::library()->destroyPreference(preference);
  }
};
using Operation = std::unique_ptr<CublasLtMatmulDesc, OperationDeleter>;
using Layout = std::unique_ptr<CublasLtMatrixLayout, LayoutDeleter>;
using Preference = std::unique_ptr<CublasLtMatmulPreference, PreferenceDeleter>;

/// How products of a shape are done.
struct Plan {
  Operation operation; // its bias is that of the last product
  Layout a;
  Layout b;
  Layout out;
  CublasLtAlgorithm algorithm;
  bool is_possible;
};

template <class Value>
void set(Operation& operation, CublasLtOperationAttribute attribute, const Value& value) {
  checkBlas(
      "cublasLtMatmulDescSetAttribute",
      FusedBlas::library()->setOperation(operation.get(), attribute, &value, sizeof value));
}
template <class Value>
void set(Layout& layout, CublasLtLayoutAttribute attribute, const Value& value) {
  checkBlas(
      "cublasLtMatrixLayoutSetAttribute",
      FusedBlas::library()->setLayout(layout.get(), attribute, &value, sizeof value));
}
template <class Value>
void set(Preference& preference, CublasLtPreferenceAttribute attribute, const Value& value) {
  checkBlas(
      "cublasLtMatmulPreferenceSetAttribute",
      FusedBlas::library()->setPreference(preference.get(), attribute, &value, sizeof value));
}

Operation operationOf(const MatrixProduct& product, const BlasTypes& types) {
  CublasLtOperation made = nullptr;
  checkBlas(
      "cublasLtMatmulDescCreate",
      FusedBlas::library()->createOperation(&made, types.sum, types.scalar()));
  Operation operation(made);
  uint32_t epilogue = 0;
  if (product.rectified) epilogue |= static_cast<uint32_t>(CublasLtEpilogue::kRelu);
  if (product.bias != nullptr) epilogue |= static_cast<uint32_t>(CublasLtEpilogue::kBias);
  set(operation, CublasLtOperationAttribute::kTransposedA, blasOperation(product.a.form));
  set(operation, CublasLtOperationAttribute::kTransposedB, blasOperation(product.b.form));
  set(operation, CublasLtOperationAttribute::kEpilogue, epilogue);
  return operation;
}

/// Of rows x columns in memory.
Layout layoutOf(
    cudaDataType element,
    int64_t rows,
    int64_t columns,
    int64_t leading,
    int64_t batch,
    int64_t stride) {
  CublasLtLayout made = nullptr;
  checkBlas(
      "cublasLtMatrixLayoutCreate",
      FusedBlas::library()->createLayout(
          &made, element, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), leading));
  Layout layout(made);
  if (batch == 1) return layout;
  set(layout, CublasLtLayoutAttribute::kBatch, static_cast<int32_t>(batch));
  set(layout, CublasLtLayoutAttribute::kBatchStride, stride);
  return layout;
}

Layout layoutOf(
    cudaDataType element,
    const MatrixFactor& factor,
    int64_t rows,
    int64_t columns,
    int64_t batch) {
  const bool is_plain = factor.form == Factor::kPlain;
  return layoutOf(
      element,
      is_plain ? rows : columns,
      is_plain ? columns : rows,
      factor.leading,
      batch,
      factor.batch_stride);
}

Preference preferenceOf(const MatrixProduct& product, size_t workspace) {
  using Attribute = CublasLtPreferenceAttribute;
  CublasLtPreference made = nullptr;
  checkBlas("cublasLtMatmulPreferenceCreate", FusedBlas::library()->createPreference(&made));
  Preference preference(made);
  set(preference, Attribute::kWorkspace, uint64_t{workspace});
  set(preference, Attribute::kReductions, kCublasLtExactPartialSums);
  set(preference, Attribute::kAlignmentA, alignmentOf(product.a.data));
  set(preference, Attribute::kAlignmentB, alignmentOf(product.b.data));
  set(preference, Attribute::kAlignmentC, alignmentOf(product.out));
  set(preference, Attribute::kAlignmentD, alignmentOf(product.out));
  return preference;
}

} // namespace

struct FusedBlasHandle {
  CublasLtHandle native;
  LibraryPlans<Key, Plan> plans;
};

namespace {

/// Asks the library for its best algorithm. One for some shapes or alignments need not exist, which
/// it says in more than one way.
bool choose(CublasLtHandle handle, const MatrixProduct& product, size_t workspace, Plan& plan) {
  const Preference preference = preferenceOf(product, workspace);
  CublasLtChoice choice{};
  int found = 0;
  const CublasStatus status = FusedBlas::library()->choose(
      handle,
      plan.operation.get(),
      plan.a.get(),
      plan.b.get(),
      plan.out.get(),
      plan.out.get(),
      preference.get(),
      1,
      &choice,
      &found);
  if (isRefusal(status) || status == CublasStatus::kInvalidValue) return false;
  checkBlas("cublasLtMatmulAlgoGetHeuristic", status);
  plan.algorithm = choice.algorithm;
  return found > 0 && choice.status == CublasStatus::kSuccess;
}

Plan planned(CublasLtHandle handle, const MatrixProduct& product, size_t workspace) {
  const BlasTypes types = *blasTypes(product);
  Plan plan{
      operationOf(product, types),
      layoutOf(types.element, product.a, product.m, product.k, product.batch),
      layoutOf(types.element, product.b, product.k, product.n, product.batch),
      layoutOf(
          types.element,
          product.m,
          product.n,
          product.out_leading,
          product.batch,
          product.out_batch_stride),
      {},
      false};
  if (product.bias != nullptr) { // for its alignment
    set(plan.operation, CublasLtOperationAttribute::kBias, product.bias);
  }
  plan.is_possible = choose(handle, product, workspace, plan);
  return plan;
}

FusedBlasHandle* createHandle() {
  const CublasLt* const library = FusedBlas::library();
  if (library == nullptr) return nullptr;
  const CublasLtHandle native = createNative("cublasLtCreate", library->create);
  return native != nullptr ? new FusedBlasHandle{native, {}} : nullptr;
}

} // namespace

const CublasLt* FusedBlas::library() {
  static const CublasLt* const found =
      loadCublasLt(std::getenv("PUONE_CUDA_BLASLT"), Blas::library());
  return found;
}

FusedBlas::FusedBlas() : handles_(createHandle) {}

bool FusedBlas::takes(const MatrixProduct& product) {
  const auto types = blasTypes(product);
  return types && types->isReal() && handles_.isUsable();
}

bool FusedBlas::multiply(
    const MatrixProduct& product, cudaStream_t stream, void* workspace, size_t bytes) {
  const LibraryHandles<FusedBlasHandle>::Taken taken(handles_);
  FusedBlasHandle* const handle = taken.get();
  if (handle == nullptr) return false;
  Plan& plan =
      handle->plans.of(keyOf(product), [&] { return planned(handle->native, product, bytes); });
  if (!plan.is_possible) return false;
  if (product.bias != nullptr) {
    set(plan.operation, CublasLtOperationAttribute::kBias, product.bias);
  }
  const CublasCompute sum = blasTypes(product)->sum;
  const BlasScalar alpha(product.alpha, sum), beta(product.beta, sum);
  const CublasStatus status = library()->multiply(
      handle->native,
      plan.operation.get(),
      alpha.get(),
      product.a.data,
      plan.a.get(),
      product.b.data,
      plan.b.get(),
      beta.get(),
      product.out,
      plan.out.get(),
      product.out,
      plan.out.get(),
      &plan.algorithm,
      workspace,
      bytes,
      stream);
  if (isRefusal(status)) return false;
  checkBlas("cublasLtMatmul", status);
  return true;
}

} // namespace puone::cuda
