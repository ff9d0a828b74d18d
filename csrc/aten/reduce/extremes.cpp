// SPDX-License-Identifier: BSD-3-Clause
// Largest and smallest elements and where they are.
#include <ATen/native/Resize.h>
#include <ATen/ops/reshape_ops.h>
#include <torch/library.h>

#include "aten/core/elementwise.h"
#include "aten/core/factory.h"
#include "aten/core/launch.h"
#include "aten/reduce/extremes_ops.h"
#include "aten/reduce/reduction.h"

namespace puone {
namespace {

using at::Tensor;

void launchExtreme(
    const char* name,
    const ReductionKernel& kernel,
    const Tensor& self,
    DimMask reduced,
    const std::array<Tensor, 2>& outs) {
  checkType(name, self.scalar_type(), kOrdered);
  launchReduction(kernel, computeType(self.scalar_type()), self, reduced, outs);
}

template <class Meta, const ReductionKernel& kKernel, OperatorName kName>
struct ExtremeValue : Meta {
  void impl(const Tensor& self, c10::IntArrayRef dim, bool, const Tensor& out) {
    static constexpr OperatorName name = kName;
    launchExtreme(name.text, kKernel, self, dimMask(dim, self), {out});
  }
};
using Amax = ExtremeValue<at::meta::structured_amax, kernel::amax, "amax">;
using Amin = ExtremeValue<at::meta::structured_amin, kernel::amin, "amin">;

struct AminMax : at::meta::structured_aminmax {
  void impl(
      const Tensor& self, std::optional<int64_t> dim, bool, const Tensor& min, const Tensor& max) {
    const DimMask reduced =
        dim ? dimMask(at::OptionalIntArrayRef(*dim), self) : dimMask(std::nullopt, self);
    launchExtreme("aminmax", kernel::amin, self, reduced, {min});
    launchExtreme("aminmax", kernel::amax, self, reduced, {max});
  }
};

template <class Meta, const ReductionKernel& kKernel, OperatorName kName>
struct ExtremeOfDim : Meta {
  template <class Precomputed>
  void impl(
      const Precomputed& precomputed,
      const Tensor& self,
      int64_t,
      bool,
      const Tensor& values,
      const Tensor& indices) {
    static constexpr OperatorName name = kName;
    launchExtreme(name.text, kKernel, self, dimMask(precomputed.dim, self), {values, indices});
  }
};
using MaxOfDim = ExtremeOfDim<at::meta::structured_max_dim, kernel::largest, "max">;
using MinOfDim = ExtremeOfDim<at::meta::structured_min_dim, kernel::smallest, "min">;

// Where the extreme is; without a dimension, in the tensor read row by row.
template <class Meta, const ReductionKernel& kKernel, OperatorName kName>
struct WhereExtreme : Meta {
  void impl(const Tensor& self, std::optional<int64_t> dim, bool, const Tensor& out) {
    static constexpr OperatorName name = kName;
    const Tensor in = dim ? self : at::_ops::reshape::call(self, c10::SymInt(-1));
    const DimMask reduced = dimMask(at::OptionalIntArrayRef(dim.value_or(0)), in);
    launchExtreme(name.text, kKernel, in, reduced, {Tensor(), out});
  }
};
using Argmax = WhereExtreme<at::meta::structured_argmax, kernel::largest, "argmax">;
using Argmin = WhereExtreme<at::meta::structured_argmin, kernel::smallest, "argmin">;

template <class Overload, const ReductionKernel& kKernel, OperatorName kName>
Tensor& extremeOfAllOut(const Tensor& self, Tensor& out) {
  static constexpr OperatorName name = kName;
  if (!isComputable(self.scalar_type())) return fallBack<Overload>(self, out);
  TORCH_CHECK(
      self.numel() > 0,
      name.text,
      "(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction "
      "dim with the 'dim' argument.");
  TORCH_CHECK(
      self.scalar_type() == out.scalar_type(),
      "Expected out tensor to have dtype ",
      self.scalar_type(),
      ", but got ",
      out.scalar_type(),
      " instead");
  TORCH_CHECK(
      self.device() == out.device(),
      "Expected out tensor to have device ",
      self.device(),
      ", but got ",
      out.device(),
      " instead");
  at::native::resize_output(out, {});
  launchExtreme(name.text, kKernel, self, dimMask(std::nullopt, self), {out});
  return out;
}

template <class Overload, const ReductionKernel& kKernel, OperatorName kName>
Tensor extremeOfAll(const Tensor& self) {
  Tensor out = newResult({}, {}, self.options());
  return extremeOfAllOut<Overload, kKernel, kName>(self, out);
}

} // namespace
} // namespace puone

#include "aten/reduce/extremes_registrations.inc"
