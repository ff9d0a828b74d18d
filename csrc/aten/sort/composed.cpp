// SPDX-License-Identifier: BSD-3-Clause
// Operators that are made of others, and for which torch has no composite form that a device gets:
// unique, bincount, isin, cross products, renorm.
#include <ATen/OpMathType.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include <numeric>

#include "aten/core/factory.h"
#include "aten/core/structured.h"
#include "aten/index/lookup.h"
#include "aten/sort/composed_ops.h"

namespace puone {
namespace {

using at::Tensor;

// ---- unique ----

// Runs of equal elements of a vector.
struct Runs {
  Tensor starts; // of each element: does it begin a run?
  Tensor values;

  explicit Runs(const Tensor& vector) {
    const int64_t n = vector.numel();
    const Tensor first = at::ones({std::min<int64_t>(n, 1)}, vector.options().dtype(c10::kBool));
    starts = n < 2 ? first : at::cat({first, vector.slice(0, 1).ne(vector.slice(0, 0, n - 1))});
    values = vector.masked_select(starts);
  }

  // The number of each element's run.
  Tensor numbers() const {
    return starts.cumsum(0, c10::kLong).sub(1);
  }

  Tensor lengths() const {
    Tensor counts = at::zeros(values.sizes(), values.options().dtype(c10::kLong));
    if (counts.numel() == 0) return counts;
    Lookup lookup = ofSlices("unique", counts, 0, numbers(), Tensor());
    lookup.value = 1;
    reduce(lookup, PUONE_REDUCE_SUM);
    return counts;
  }
};

Tensor nothing(const Tensor& like) {
  return newResult({0}, {}, like.options().dtype(c10::kLong));
}

// Always sorted: that is how equal elements are found.
std::tuple<Tensor, Tensor, Tensor> unique2(
    const Tensor& self, bool /*sorted*/, bool return_inverse, bool return_counts) {
  const auto [vector, order] = self.reshape({-1}).sort(/*stable=*/true, 0, /*descending=*/false);
  const Runs runs(vector);
  Tensor inverse = nothing(self);
  if (return_inverse) {
    inverse = newResult(vector.sizes(), {}, inverse.options());
    if (inverse.numel() != 0) inverse.scatter_(0, order, runs.numbers());
    inverse = inverse.view(self.sizes());
  }
  return {runs.values, inverse, return_counts ? runs.lengths() : nothing(self)};
}

std::tuple<Tensor, Tensor> unique(const Tensor& self, bool sorted, bool return_inverse) {
  const auto [values, inverse, counts] = unique2(self, sorted, return_inverse, false);
  return {values, inverse};
}

std::tuple<Tensor, Tensor, Tensor> uniqueConsecutive(
    const Tensor& self, bool return_inverse, bool return_counts, std::optional<int64_t> dim) {
  if (dim && self.dim() != 1) {
    return fallBack<at::_ops::unique_consecutive>(self, return_inverse, return_counts, dim);
  }
  const Runs runs(self.reshape({-1}));
  return {
      runs.values,
      return_inverse ? runs.numbers().view(self.sizes()) : nothing(self),
      return_counts ? runs.lengths() : nothing(self)};
}

// ---- bincount ----

Tensor bincount(const Tensor& self, const std::optional<Tensor>& given_weights, int64_t minlength) {
  TORCH_CHECK(minlength >= 0, "minlength should be >= 0");
  TORCH_CHECK_NOT_IMPLEMENTED(
      c10::isIntegralType(self.scalar_type(), false),
      "\"bincount\" not implemented for '",
      self.scalar_type(),
      "'");
  const Tensor weights = given_weights.value_or(Tensor());
  c10::ScalarType type = c10::kLong;
  if (weights.defined()) {
    TORCH_CHECK(
        weights.dim() == 1 && weights.numel() == self.numel(),
        "weights should be 1-d and have the same length as input");
    type = weights.scalar_type() == c10::kFloat ? c10::kFloat : c10::kDouble;
  }
  if (self.dim() == 1 && self.numel() == 0) {
    return at::zeros({minlength}, self.options().dtype(c10::kLong));
  }
  const Tensor bins = self.to(c10::kLong);
  TORCH_CHECK(
      self.dim() == 1 && bins.min().item<int64_t>() >= 0,
      "bincount only supports 1-d non-negative integral inputs.");
  const int64_t length = std::max(bins.max().item<int64_t>() + 1, minlength);
  Tensor counts = at::zeros({length}, self.options().dtype(type));
  Lookup lookup =
      ofSlices("bincount", counts, 0, bins, weights.defined() ? weights.to(type) : weights);
  lookup.value = 1;
  reduce(lookup, PUONE_REDUCE_SUM);
  return counts;
}

// ---- isin ----

struct IsIn : at::meta::structured_isin_Tensor_Tensor {
  void impl(
      const Tensor& elements,
      const Tensor& tests,
      bool /*assume_unique*/,
      bool invert,
      const Tensor& out) {
    if (elements.numel() == 0) return;
    if (tests.numel() == 0) {
      out.fill_(invert);
      return;
    }
    const auto type = c10::promoteTypes(elements.scalar_type(), tests.scalar_type());
    const Tensor wanted = elements.to(type);
    const Tensor sorted = std::get<0>(tests.to(type).reshape({-1}).sort());
    const Tensor places = at::searchsorted(sorted, wanted).clamp_max(sorted.numel() - 1);
    const Tensor nearest = sorted.take(places);
    out.copy_(invert ? nearest.ne(wanted) : nearest.eq(wanted));
  }
};

struct IsInScalar : at::meta::structured_isin_Tensor_Scalar {
  void impl(
      const Tensor& elements,
      const c10::Scalar& test,
      bool /*assume_unique*/,
      bool invert,
      const Tensor& out) {
    out.copy_(invert ? elements.ne(test) : elements.eq(test));
  }
};

struct ScalarIsIn : at::meta::structured_isin_Scalar_Tensor {
  void impl(
      const c10::Scalar& element,
      const Tensor& tests,
      bool /*assume_unique*/,
      bool invert,
      const Tensor& out) {
    out.resize_({}); // upstream's meta function gives it no elements
    out.copy_(invert ? tests.ne(element).all() : tests.eq(element).any());
  }
};

// ---- cross products ----

struct Cross : at::meta::structured_linalg_cross {
  void impl(const Tensor& given_a, const Tensor& given_b, int64_t dim, const Tensor& out) {
    const Tensor a = given_a.expand(out.sizes()), b = given_b.expand(out.sizes());
    const auto next = [&](const Tensor& t) { return t.roll(-1, dim); };
    const auto last = [&](const Tensor& t) { return t.roll(-2, dim); };
    out.copy_(next(a).mul(last(b)).sub(last(a).mul(next(b))));
  }
};

// ---- renorm ----

struct Renorm : at::meta::structured_renorm {
  void impl(
      const Tensor& self,
      const c10::Scalar& p,
      int64_t given_dim,
      const c10::Scalar& maxnorm,
      const Tensor& out) {
    const int64_t dim = at::maybe_wrap_dim(given_dim, self.dim());
    c10::DimVector others(static_cast<size_t>(self.dim()));
    std::iota(others.begin(), others.end(), 0);
    others.erase(others.begin() + dim);
    const auto type = at::toOpMathType(c10::toRealValueType(self.scalar_type()));
    const Tensor norms =
        at::linalg_vector_norm(
            self.to(at::toOpMathType(self.scalar_type())), p, others, /*keepdim=*/true)
            .to(type);
    const Tensor scales = norms.add(1e-7).reciprocal().mul(maxnorm);
    const Tensor factors = at::where(norms.gt(maxnorm), scales, at::ones({}, norms.options()));
    out.copy_(self.mul(factors.to(self.scalar_type())));
  }
};

} // namespace
} // namespace puone

#include "aten/sort/composed_registrations.inc"
