// SPDX-License-Identifier: BSD-3-Clause
// Reductions to a sum, a product, a norm, a truth.

#include "aten/reduce/reduction.h"
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/eq_ops.h>
#include <torch/library.h>
#include <cmath>
#include "aten/core/elementwise.h"
#include "aten/core/factory.h"
#include "aten/core/launch.h"
#include "aten/reduce/reduction_ops.h"

namespace puone {
namespace {

using at::Tensor;
using c10::ScalarType;
using OptionalType = std::optional<ScalarType>;

// Integers add up in 64 bits and are cut to the output's afterwards.
ScalarType totalType(ScalarType out) {
  return c10::isIntegralType(out, /*includeBool=*/false) ? ScalarType::Long : out;
}

void launchTotal(
    const ReductionKernel& kernel,
    const ReductionKernel& of_bools,
    const Tensor& self,
    DimMask reduced,
    const Tensor& out,
    double divisor = 1) {
  const bool bools = out.scalar_type() == ScalarType::Bool;
  launchReduction(
      bools ? of_bools : kernel, totalType(out.scalar_type()), self, reduced, {out}, {divisor});
}

struct Sum : at::meta::structured_sum_dim_IntList {
  void impl(
      const Tensor& self, at::OptionalIntArrayRef dim, bool, OptionalType, const Tensor& out) {
    launchTotal(kernel::sum, kernel::any, self, dimMask(dim, self), out);
  }
};

struct Mean : at::meta::structured_mean_dim {
  void impl(
      const Tensor& self, at::OptionalIntArrayRef dim, bool, OptionalType, const Tensor& out) {
    const DimMask reduced = dimMask(dim, self);
    const auto count = static_cast<double>(reducedElements(self, reduced));
    launchTotal(kernel::sum, kernel::any, self, reduced, out, count);
  }
};

struct Prod : at::meta::structured_prod_dim_int {
  void impl(const Tensor& self, int64_t dim, bool, OptionalType, const Tensor& out) {
    launchTotal(kernel::prod, kernel::all, self, dimMask(dim, self), out);
  }
};

Tensor prodOfAll(const Tensor& self, OptionalType dtype) {
  const ScalarType type = at::native::get_dtype_from_self(self, dtype, /*promote_integers=*/true);
  if (!isComputable(self.scalar_type()) || !isComputable(type)) {
    return fallBack<at::_ops::prod>(self, dtype);
  }
  Tensor out = newResult({}, {}, self.options().dtype(type));
  launchTotal(kernel::prod, kernel::all, self, dimMask(std::nullopt, self), out);
  return out;
}

Tensor& nansumOut(
    const Tensor& self,
    at::OptionalIntArrayRef dim,
    bool keepdim,
    OptionalType dtype,
    Tensor& out) {
  TORCH_CHECK(!self.is_complex(), "nansum does not support complex inputs");
  if (c10::isIntegralType(self.scalar_type(), /*includeBool=*/true)) {
    return at::_ops::sum_IntList_out::call(self, dim, keepdim, dtype, out);
  }
  if (!isComputable(self.scalar_type()) || !isComputable(out.scalar_type())) {
    return fallBack<at::_ops::nansum_out>(self, dim, keepdim, dtype, out);
  }
  TORCH_CHECK(
      !dtype || *dtype == out.scalar_type(),
      "nansum: provided dtype must match dtype of result. Got ",
      out.scalar_type(),
      " and ",
      dtype.value_or(out.scalar_type()),
      ".");
  const DimMask reduced = dimMask(dim, self);
  at::native::resize_output(out, at::native::shape_from_dim_mask(self, reduced, keepdim));
  const bool real = out.is_floating_point();
  const ScalarType compute = real ? out.scalar_type() : self.scalar_type();
  launchReduction(kernel::nansum, compute, self, reduced, {out}, {1});
  return out;
}

Tensor nansum(const Tensor& self, at::OptionalIntArrayRef dim, bool keepdim, OptionalType dtype) {
  const ScalarType type = at::native::get_dtype_from_self(self, dtype, /*promote_integers=*/true);
  Tensor out = newResult({0}, {}, self.options().dtype(type));
  return nansumOut(self, dim, keepdim, dtype, out);
}

template <class Meta, const ReductionKernel& kKernel>
struct TruthOfAll : Meta {
  void impl(const Tensor& self, const Tensor& out) {
    launchReduction(kKernel, ScalarType::Bool, self, dimMask(std::nullopt, self), {out});
  }
};
template <class Meta, const ReductionKernel& kKernel>
struct TruthOfDim : Meta {
  void impl(const Tensor& self, int64_t dim, bool, const Tensor& out) {
    launchReduction(kKernel, ScalarType::Bool, self, dimMask(dim, self), {out});
  }
};
template <class Meta, const ReductionKernel& kKernel>
struct TruthOfDims : Meta {
  void impl(const Tensor& self, at::OptionalIntArrayRef dims, bool, const Tensor& out) {
    launchReduction(kKernel, ScalarType::Bool, self, dimMask(dims, self, true), {out});
  }
};

using Any = TruthOfAll<at::meta::structured_any, kernel::any>;
using AnyOfDim = TruthOfDim<at::meta::structured_any_dim, kernel::any>;
using AnyOfDims = TruthOfDims<at::meta::structured_any_dims, kernel::any>;
using All = TruthOfAll<at::meta::structured_all, kernel::all>;
using AllOfDim = TruthOfDim<at::meta::structured_all_dim, kernel::all>;
using AllOfDims = TruthOfDims<at::meta::structured_all_dims, kernel::all>;

Tensor countNonzero(const Tensor& self, c10::IntArrayRef dims) {
  if (!isComputable(self.scalar_type())) {
    return fallBack<at::_ops::count_nonzero_dim_IntList>(self, dims);
  }
  const DimMask reduced = dimMask(dims, self);
  Tensor out = newResult(
      at::native::shape_from_dim_mask(self, reduced, /*keepdim=*/false),
      {},
      self.options().dtype(ScalarType::Long));
  launchReduction(kernel::count_nonzero, ScalarType::Bool, self, reduced, {out});
  return out;
}

void launchNorm(
    const Tensor& self,
    double order,
    at::OptionalIntArrayRef dim,
    ScalarType in,
    const Tensor& out) {
  const ReductionKernel& kernel = order == 0           ? kernel::count_nonzero
                                  : order == 1         ? kernel::norm_1
                                  : order == 2         ? kernel::norm_2
                                  : !std::isinf(order) ? kernel::norm_p
                                  : order > 0          ? kernel::norm_infinity
                                                       : kernel::norm_minus_infinity;
  const ScalarType compute = order == 0 ? ScalarType::Bool : in;
  launchReduction(kernel, compute, self, dimMask(dim, self), {out}, {order});
}

struct VectorNorm : at::meta::structured_linalg_vector_norm {
  void impl(
      const Tensor& self,
      const c10::Scalar& order,
      at::OptionalIntArrayRef dim,
      bool,
      OptionalType dtype,
      const Tensor& out) {
    launchNorm(self, order.toDouble(), dim, dtype.value_or(self.scalar_type()), out);
  }
};

double orderOf(at::OptionalScalarRef p) {
  return p.has_value() ? p.get().toDouble() : 2.0;
}

struct Norm : at::meta::structured_norm_ScalarOpt_dim {
  void impl(
      const Tensor& self, at::OptionalScalarRef p, c10::IntArrayRef dim, bool, const Tensor& out) {
    launchNorm(self, orderOf(p), dim, self.scalar_type(), out);
  }
};

struct NormOfDtype : at::meta::structured_norm_ScalarOpt_dim_dtype {
  void impl(
      const Tensor& self,
      at::OptionalScalarRef p,
      c10::IntArrayRef dim,
      bool,
      ScalarType dtype,
      const Tensor& out) {
    launchNorm(self, orderOf(p), dim, dtype, out);
  }
};

// The result is the host's: the one wait it takes is item's.
bool equal(const Tensor& self, const Tensor& other) {
  TORCH_CHECK(
      self.device() == other.device(),
      "Cannot compare two tensors on different devices. Got: ",
      self.device(),
      " and ",
      other.device());
  if (self.sizes() != other.sizes()) return false;
  if (self.numel() == 0) return true;
  return at::_ops::all::call(at::_ops::eq_Tensor::call(self, other)).item<bool>();
}

} // namespace
} // namespace puone

#include "aten/reduce/reduction_registrations.inc"
