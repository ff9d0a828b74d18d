// SPDX-License-Identifier: BSD-3-Clause
// Variances, standard deviations and the means that go with them.
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/imag_ops.h>
#include <ATen/ops/mean_ops.h>
#include <ATen/ops/real_ops.h>
#include <ATen/ops/sqrt_ops.h>
#include <torch/library.h>

#include "aten/core/factory.h"
#include "aten/core/launch.h"
#include "aten/core/structured.h"
#include "aten/reduce/moments_ops.h"
#include "aten/reduce/reduction.h"

namespace puone {
namespace {

using at::Tensor;
using Dims = at::OptionalIntArrayRef;
using Correction = std::optional<c10::Scalar>;
using TwoTensors = std::tuple<Tensor, Tensor>;

void check(const char* name, const Tensor& self, DimMask reduced, double correction) {
  TORCH_CHECK(
      self.is_floating_point() || self.is_complex(),
      name,
      " only support floating point and complex dtypes");
  if (static_cast<double>(reducedElements(self, reduced)) - correction <= 0 && self.numel() > 0) {
    TORCH_WARN(
        name,
        "(): degrees of freedom is <= 0. Correction should be strictly less than the reduction "
        "factor (input numel divided by output numel).");
  }
}

Tensor resultFor(const Tensor& self, DimMask reduced, bool keepdim, c10::ScalarType type) {
  const auto sizes = at::native::shape_from_dim_mask(self, reduced, keepdim);
  return newResult(sizes, {}, self.options().dtype(type));
}

// The variance of complex numbers is that of both their parts.
Tensor complexVariance(const Tensor& self, Dims dim, const Correction& correction, bool keepdim) {
  return at::_ops::add_Tensor::call(
      at::_ops::var_correction::call(at::_ops::real::call(self), dim, correction, keepdim),
      at::_ops::var_correction::call(at::_ops::imag::call(self), dim, correction, keepdim),
      1);
}

template <class Overload, bool kRoot>
Tensor variance(const Tensor& self, Dims dim, const Correction& given, bool keepdim) {
  if (!isComputable(self.scalar_type())) return fallBack<Overload>(self, dim, given, keepdim);
  const DimMask reduced = dimMask(dim, self);
  const double correction = given ? given->toDouble() : 1;
  check(kRoot ? "std" : "var", self, reduced, correction);
  if (self.is_complex()) {
    const Tensor result = complexVariance(self, dim, given, keepdim);
    return kRoot ? at::_ops::sqrt::call(result) : result;
  }
  Tensor out = resultFor(self, reduced, keepdim, self.scalar_type());
  launchReduction(kernel::moments, self.scalar_type(), self, reduced, {out}, {correction, kRoot});
  return out;
}

template <class Overload, class Functional, bool kRoot>
Tensor& varianceOut(
    const Tensor& self, Dims dim, const Correction& given, bool keepdim, Tensor& out) {
  if (!isComputable(self.scalar_type())) return fallBack<Overload>(self, dim, given, keepdim, out);
  checkCanHold(out, c10::toRealValueType(self.scalar_type()));
  const Tensor result = variance<Functional, kRoot>(self, dim, given, keepdim);
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

template <class Overload, class Functional, bool kRoot>
TwoTensors varianceAndMean(const Tensor& self, Dims dim, const Correction& given, bool keepdim) {
  if (!isComputable(self.scalar_type())) return fallBack<Overload>(self, dim, given, keepdim);
  if (self.is_complex()) {
    return {
        variance<Functional, kRoot>(self, dim, given, keepdim),
        at::_ops::mean_dim::call(self, dim, keepdim, std::nullopt)};
  }
  const DimMask reduced = dimMask(dim, self);
  const double correction = given ? given->toDouble() : 1;
  check(kRoot ? "std_mean" : "var_mean", self, reduced, correction);
  const c10::ScalarType type = self.scalar_type();
  TwoTensors result{
      resultFor(self, reduced, keepdim, type), resultFor(self, reduced, keepdim, type)};
  const auto& [spread, mean] = result;
  launchReduction(kernel::moments, type, self, reduced, {spread, mean}, {correction, kRoot});
  return result;
}

} // namespace
} // namespace puone

#include "aten/reduce/moments_registrations.inc"
