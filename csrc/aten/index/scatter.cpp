// SPDX-License-Identifier: BSD-3-Clause
// gather and scatter: one index per element, along one dimension.
#include <ATen/WrapDimUtils.h>
#include <torch/library.h>

#include "aten/core/output.h"
#include "aten/core/structured.h"
#include "aten/index/lookup.h"
#include "aten/index/scatter_ops.h"

namespace puone {
namespace {

using at::Tensor;

struct Gather : at::meta::structured_gather {
  static bool supports(const Tensor& /*self*/, const auto&... /*others*/) {
    return true;
  }
  void impl(
      const Tensor& self,
      int64_t dim,
      const Tensor& index,
      bool /*sparse_grad*/,
      const Tensor& out) {
    if (index.numel() == 0) return;
    dim = at::maybe_wrap_dim(dim, self.dim());
    lookUp(alongDimension("gather", self, dim, index, out));
  }
};

Lookup scatterLookup(const Tensor& out, int64_t dim, const Tensor& index, const Tensor& src) {
  return alongDimension("scatter", out, at::maybe_wrap_dim(dim, out.dim()), index, src);
}

Lookup scatterLookup(
    const Tensor& out, int64_t dim, const Tensor& index, const c10::Scalar& value) {
  Lookup lookup = scatterLookup(out, dim, index, Tensor());
  lookup.value = value;
  return lookup;
}

puone_reduction scatterReduction(std::string_view name) {
  return name == "add" ? PUONE_REDUCE_SUM : PUONE_REDUCE_PRODUCT; // the meta allows no other
}

template <class Meta>
struct Scatter : Meta {
  static bool supports(const Tensor& /*self*/, const auto&... /*others*/) {
    return true;
  }
  template <class Source>
  void impl(
      const Tensor& self, int64_t dim, const Tensor& index, const Source& src, const Tensor& out) {
    startAsCopy(out, self);
    if (index.numel() != 0) scatter(scatterLookup(out, dim, index, src));
  }
};

template <class Meta>
struct ScatterReduce : Meta {
  static bool supports(const Tensor& self, const auto&... /*others*/) {
    return isReducible(self.scalar_type());
  }
  template <class Source>
  void impl(
      const Tensor& self,
      int64_t dim,
      const Tensor& index,
      const Source& src,
      std::string_view reduction,
      const Tensor& out) {
    startAsCopy(out, self);
    if (index.numel() == 0) return;
    reduce(scatterLookup(out, dim, index, src), scatterReduction(reduction));
  }
};

struct ScatterAdd : at::meta::structured_scatter_add {
  static bool supports(const Tensor& self, const auto&... /*others*/) {
    return isReducible(self.scalar_type());
  }
  void impl(
      const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, const Tensor& out) {
    startAsCopy(out, self);
    if (index.numel() != 0) reduce(scatterLookup(out, dim, index, src), PUONE_REDUCE_SUM);
  }
};

struct ScatterReduceTwo : at::meta::structured_scatter_reduce_two {
  static bool supports(const Tensor& self, const auto&... /*others*/) {
    return isReducible(self.scalar_type());
  }
  void impl(
      const Tensor& self,
      int64_t dim,
      const Tensor& index,
      const Tensor& src,
      std::string_view reduction,
      bool include_self,
      const Tensor& out) {
    startAsCopy(out, self);
    if (index.numel() == 0) return;
    reduceAs(reduction, include_self, out, [&](const Tensor& table) {
      return scatterLookup(table, dim, index, src);
    });
  }
};

} // namespace
} // namespace puone

#include "aten/index/scatter_registrations.inc"
