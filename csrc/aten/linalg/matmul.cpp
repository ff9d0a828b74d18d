// SPDX-License-Identifier: BSD-3-Clause
// Matrix products. Everything is one kernel, "gemm": a vector is a matrix with one row or column.
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/relu.h>
#include <torch/library.h>

#include "aten/core/launch.h"
#include "aten/core/output.h"
#include "aten/core/structured.h"
#include "aten/core/tf32.h"
#include "aten/linalg/matmul_ops.h"
#include "kernels/args/matmul.h"
#include "runtime/stream.h"

namespace puone {
namespace {

using at::Tensor;
using c10::Scalar;

bool hasProduct(c10::ScalarType type) {
  return isComputable(type) && type != c10::kBool && type != c10::kUInt16 && type != c10::kUInt32 &&
         type != c10::kComplexHalf;
}

// Whether these tensors have one type, which the kernels multiply in.
template <class... Tensors>
bool canMultiply(const Tensor& first, const Tensors&... others) {
  return hasProduct(first.scalar_type()) && ((others.scalar_type() == first.scalar_type()) && ...);
}

puone_factor factor(const Scalar& value, c10::ScalarType type) {
  if (c10::isIntegralType(type, /*includeBool=*/false)) {
    return {0, 0, value.to<int64_t>()};
  }
  if (c10::isComplexType(type)) {
    const auto number = value.to<c10::complex<double>>();
    return {number.real(), number.imag(), 0};
  }
  return {value.to<double>(), 0, 0};
}

bool isZero(const Scalar& value) {
  return value.isComplex() ? value.toComplexDouble() == 0.0 : value.toDouble() == 0.0;
}

// The last two dimensions are the matrix; a third one is the batch.
puone_matrix matrix(const Tensor& tensor, void* data) {
  const int64_t size = tensor.itemsize();
  const int64_t dim = tensor.dim();
  return {
      data,
      tensor.stride(dim - 2) * size,
      tensor.stride(dim - 1) * size,
      dim == 3 ? tensor.stride(0) * size : 0,
      tensor.is_conj()};
}

bool overlaps(const Tensor& out, const Tensor& input) {
  return out.is_alias_of(input) && at::get_overlap_status(out, input) != at::MemOverlapStatus::No;
}

// out = activation(beta * self + alpha * (a @ b)); all of two dimensions, or all of three. With
// beta 0, self is not read.
void launchGemm(
    const Tensor& out,
    const Tensor& self,
    const Tensor& a,
    const Tensor& b,
    const Scalar& beta,
    const Scalar& alpha,
    puone_activation activation = PUONE_ACTIVATION_NONE) {
  at::assert_no_internal_overlap(out);
  if (out.numel() == 0) return;
  const bool has_self = !isZero(beta);
  // Products see conjugate views: torch lets them pass to spare the copy of a factor.
  if (out.is_conj() || (has_self && self.is_conj()) || overlaps(out, a) || overlaps(out, b) ||
      (has_self && overlaps(out, self) && !out.is_same(self))) {
    const Tensor result = at::empty(out.sizes(), out.options());
    launchGemm(result, has_self ? self.resolve_conj() : result, a, b, beta, alpha, activation);
    out.copy_(result);
    return;
  }
  puone_gemm_args args{};
  args.dtype = *kernelDtype(out.scalar_type());
  args.allow_tf32 = allowsTf32(args.dtype, at::Float32Op::MATMUL) ? 1 : 0;
  args.batch = out.dim() == 3 ? out.size(0) : 1;
  args.m = out.size(-2);
  args.n = out.size(-1);
  args.k = a.size(-1);
  args.activation = activation;
  args.alpha = factor(alpha, out.scalar_type());
  args.beta = factor(beta, out.scalar_type());
  args.out = matrix(out, outputData(out));
  if (has_self) args.self = matrix(self, inputData(self));
  args.a = matrix(a, inputData(a));
  args.b = matrix(b, inputData(b));
  launchKernel(kernel::gemm, args, getCurrentStream(out.device().index()));
}

// The same, but as BLAS has it: an alpha of zero hides what is in a and b.
void launchBlasGemm(
    const Tensor& out,
    const Tensor& self,
    const Tensor& a,
    const Tensor& b,
    const Scalar& beta,
    const Scalar& alpha,
    puone_activation activation = PUONE_ACTIVATION_NONE) {
  if (isZero(alpha)) {
    launchGemm(out, self, a.narrow(-1, 0, 0), b.narrow(-2, 0, 0), beta, alpha, activation);
  } else {
    launchGemm(out, self, a, b, beta, alpha, activation);
  }
}

// The checks that torch leaves to the kernel.
void checkSameType(const Tensor& a, const Tensor& b) {
  TORCH_CHECK(
      a.scalar_type() == b.scalar_type(),
      "expected m1 and m2 to have the same dtype, but got: ",
      a.dtype(),
      " != ",
      b.dtype());
}

template <class Meta>
struct Product : Meta {
  static bool supports(const Tensor& a, const Tensor& /*b*/) {
    return hasProduct(a.scalar_type());
  }
  void impl(const Tensor& a, const Tensor& b, const Tensor& out) {
    checkSameType(a, b);
    launchGemm(out, out, a, b, 0, 1);
  }
};

template <class Meta>
struct AddProduct : Meta {
  template <class... Rest>
  static bool supports(
      const Tensor& /*self*/, const Tensor& a, const Tensor& /*b*/, const Rest&...) {
    return hasProduct(a.scalar_type());
  }
};

struct Addmm : AddProduct<at::meta::structured_addmm> {
  void impl(
      const Tensor& self,
      const Tensor& a,
      const Tensor& b,
      const Scalar& beta,
      const Scalar& alpha,
      const Tensor& out) {
    checkSameType(a, b);
    launchBlasGemm(out, *at::expand_size(self, out.sizes(), "addmm"), a, b, beta, alpha);
  }
};

struct AddmmActivation : AddProduct<at::meta::structured__addmm_activation> {
  void impl(
      const Tensor& self,
      const Tensor& a,
      const Tensor& b,
      const Scalar& beta,
      const Scalar& alpha,
      bool use_gelu,
      const Tensor& out) {
    checkSameType(a, b);
    const auto expanded = at::expand_size(self, out.sizes(), "addmm");
    if (!use_gelu && c10::isFloatingType(out.scalar_type())) {
      launchBlasGemm(out, *expanded, a, b, beta, alpha, PUONE_ACTIVATION_RELU);
      return;
    }
    launchBlasGemm(out, *expanded, a, b, beta, alpha);
    // That of erf, as elsewhere in torch: libraries that fuse gelu have that of tanh.
    Tensor result = out;
    use_gelu ? at::gelu_(result) : at::relu_(result);
  }
};

struct Baddbmm : AddProduct<at::meta::structured_baddbmm> {
  // The meta has copied self to out.
  void impl(
      const Tensor& /*self*/,
      const Tensor& a,
      const Tensor& b,
      const Scalar& beta,
      const Scalar& alpha,
      const Tensor& out) {
    checkSameType(a, b);
    launchBlasGemm(out, out, a, b, beta, alpha);
  }
};

struct Addmv : AddProduct<at::meta::structured_addmv> {
  void impl(
      const Tensor& self,
      const Tensor& mat,
      const Tensor& vec,
      const Scalar& beta,
      const Scalar& alpha,
      const Tensor& out) {
    const auto expanded = at::expand_size(self, {mat.size(0)}, "addmv");
    launchBlasGemm(out.unsqueeze(1), expanded->unsqueeze(1), mat, vec.unsqueeze(1), beta, alpha);
  }
};

void checkVectors(const Tensor& self, const Tensor& other) {
  TORCH_CHECK(
      self.dim() == 1 && other.dim() == 1,
      "1D tensors expected, but got ",
      self.dim(),
      "D and ",
      other.dim(),
      "D tensors");
  TORCH_CHECK(
      self.scalar_type() == other.scalar_type(),
      "dot : expected both vectors to have same dtype, but found ",
      self.scalar_type(),
      " and ",
      other.scalar_type());
  TORCH_CHECK(
      self.numel() == other.numel(),
      "inconsistent tensor size, expected tensor [",
      self.numel(),
      "] and src [",
      other.numel(),
      "] to have the same number of elements, but got ",
      self.numel(),
      " and ",
      other.numel(),
      " elements respectively");
  TORCH_CHECK(
      self.device() == other.device(),
      "Expected all tensors to be on the same device, but found at least two devices, ",
      self.device(),
      " and ",
      other.device(),
      "!");
}

template <class Overload, bool kConj>
Tensor dot(const Tensor& self, const Tensor& other) {
  if (!hasProduct(self.scalar_type())) return fallBack<Overload>(self, other);
  checkVectors(self, other);
  const Tensor out = at::empty({}, self.options());
  puone_dot_args args{};
  args.dtype = *kernelDtype(self.scalar_type());
  args.n = self.numel();
  args.out = outputData(out);
  args.a = inputData(self);
  args.b = inputData(other);
  args.a_stride = self.stride(0) * self.itemsize();
  args.b_stride = other.stride(0) * other.itemsize();
  args.a_conj = kConj != self.is_conj();
  args.b_conj = other.is_conj();
  launchKernel(kernel::dot, args, getCurrentStream(self.device().index()));
  return out;
}

// The sum over the batch is a longer sum over k.
Tensor batchProduct(
    const Tensor& self,
    const Tensor& batch1,
    const Tensor& batch2,
    const Scalar& beta,
    const Scalar& alpha) {
  const int64_t rows = batch1.size(1), columns = batch2.size(2);
  TORCH_CHECK(batch1.dim() == 3, "batch1 must be a 3D tensor");
  TORCH_CHECK(batch2.dim() == 3, "batch2 must be a 3D tensor");
  TORCH_CHECK(
      batch1.size(0) == batch2.size(0),
      "batch1 and batch2 must have same number of batches, got ",
      batch1.size(0),
      " and ",
      batch2.size(0));
  TORCH_CHECK(
      batch1.size(2) == batch2.size(1),
      "Incompatible matrix sizes for bmm (",
      rows,
      "x",
      batch1.size(2),
      " and ",
      batch2.size(1),
      "x",
      columns,
      ")");
  const int64_t k = batch1.size(0) * batch1.size(2);
  return at::addmm(
      self, batch1.transpose(0, 1).reshape({rows, k}), batch2.reshape({k, columns}), beta, alpha);
}

Tensor& batchProductInplace(
    Tensor& self,
    const Tensor& batch1,
    const Tensor& batch2,
    const Scalar& beta,
    const Scalar& alpha) {
  const Tensor result = batchProduct(self, batch1, batch2, beta, alpha);
  TORCH_CHECK(
      self.sizes() == result.sizes(),
      "Bad in-place call: input tensor size ",
      self.sizes(),
      " and output tensor size ",
      result.sizes(),
      " should match");
  return self.copy_(result);
}

Tensor& batchProductOut(
    const Tensor& self,
    const Tensor& batch1,
    const Tensor& batch2,
    const Scalar& beta,
    const Scalar& alpha,
    Tensor& out) {
  const Tensor result = batchProduct(self, batch1, batch2, beta, alpha);
  resizeOut(out, result.sizes(), {}, result.options());
  return out.copy_(result);
}

// A product with k = 1: rounded once, which torch's composite form is not. Of 16-bit floats the CPU
// rounds every step, so that theirs is its result.
bool canAddOuter(const Tensor& self, const Tensor& a, const Tensor& b) {
  return !c10::isReducedFloatingType(self.scalar_type()) && a.dim() == 1 && b.dim() == 1 &&
         canMultiply(self, a, b) && self.device() == a.device() && self.device() == b.device();
}

void launchOuter(
    const Tensor& out,
    const Tensor& self,
    const Tensor& a,
    const Tensor& b,
    const Scalar& beta,
    const Scalar& alpha) {
  const auto expanded = at::expand_size(self, out.sizes(), "addr");
  launchGemm(out, *expanded, a.unsqueeze(1), b.unsqueeze(0), beta, alpha);
}

Tensor addOuter(
    const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  if (!canAddOuter(self, a, b)) return fallBack<at::_ops::addr>(self, a, b, beta, alpha);
  const Tensor out = at::empty({a.size(0), b.size(0)}, self.options());
  launchOuter(out, self, a, b, beta, alpha);
  return out;
}

Tensor& addOuterOut(
    const Tensor& self,
    const Tensor& a,
    const Tensor& b,
    const Scalar& beta,
    const Scalar& alpha,
    Tensor& out) {
  if (!canAddOuter(self, a, b) || out.scalar_type() != self.scalar_type()) {
    return fallBack<at::_ops::addr_out>(self, a, b, beta, alpha, out);
  }
  resizeOut(out, {a.size(0), b.size(0)}, {}, self.options());
  launchOuter(out, self, a, b, beta, alpha);
  return out;
}

Tensor& addOuterInplace(
    Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  TORCH_CHECK(self.dim() == 2, "2D tensor expected, got ", self.dim(), "D tensor for input");
  TORCH_CHECK(
      a.dim() == 1 && b.dim() == 1 && self.size(0) == a.size(0) && self.size(1) == b.size(0),
      "size mismatch, input: ",
      self.sizes(),
      ", v1: ",
      a.sizes(),
      ", v2: ",
      b.sizes());
  return addOuterOut(self, a, b, beta, alpha, self);
}

} // namespace
} // namespace puone

#include "aten/linalg/matmul_registrations.inc"
