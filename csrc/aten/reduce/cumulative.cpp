// SPDX-License-Identifier: BSD-3-Clause
// Running sums, products, extremes and log-sum-exps.
#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

#include "aten/core/elementwise.h"
#include "aten/reduce/cumulative_ops.h"
#include "kernels/args/reduction.h"
#include "runtime/stream.h"

namespace puone {
namespace {

using at::Tensor;
using c10::ScalarType;

template <class... Out>
void launchScan(
    const Kernel& kernel, ScalarType compute, const Tensor& self, int64_t dim, const Out&... outs) {
  const int64_t ndim = self.dim();
  const int64_t scanned = at::maybe_wrap_dim(dim, ndim); // throws, also for nothing to scan
  if (self.numel() == 0) return;
  TORCH_CHECK(
      ndim <= PUONE_MAX_DIMS, "puone: cannot scan more than ", PUONE_MAX_DIMS, " dimensions");
  puone_scan_args args{};
  args.ndim = static_cast<int32_t>(ndim);
  args.scanned = static_cast<int32_t>(ndim - 1 - scanned);
  args.compute = *kernelDtype(computeType(compute));
  for (int64_t d = 0; d < ndim; ++d) args.sizes[ndim - 1 - d] = self.size(d);
  const auto set = [&](puone_operand& operand, int32_t& dtype, const Tensor& tensor) {
    dtype = *kernelDtype(tensor.scalar_type());
    operand.data = const_cast<void*>(tensor.const_data_ptr());
    for (int64_t d = 0; d < ndim; ++d) {
      operand.strides[ndim - 1 - d] = tensor.stride(d) * static_cast<int64_t>(tensor.itemsize());
    }
  };
  set(args.in, args.in_dtype, self);
  int o = 0;
  (..., (set(args.outs[o], args.out_dtypes[o], outs), ++o));
  kernel.launch(args, getCurrentStream(self.device().index()));
}

template <class Meta, KernelName kName>
struct CumulativeTotal : Meta {
  void impl(const Tensor& self, int64_t dim, std::optional<ScalarType>, const Tensor& out) {
    static constexpr KernelName name = kName;
    static const Kernel kernel(name.text);
    const bool integers = c10::isIntegralType(out.scalar_type(), /*includeBool=*/true);
    launchScan(kernel, integers ? ScalarType::Long : out.scalar_type(), self, dim, out);
  }
};

template <class Overload, KernelName kName>
void cumulativeExtreme(const Tensor& self, Tensor& values, Tensor& indices, int64_t dim) {
  static constexpr KernelName name = kName;
  static const Kernel kernel(name.text);
  if (!isComputable(self.scalar_type())) return fallBack<Overload>(self, values, indices, dim);
  checkType(name.text, self.scalar_type(), kOrdered);
  launchScan(kernel, self.scalar_type(), self, dim, values, indices);
}

Tensor& logCumulativeSumExpOut(const Tensor& self, int64_t dim, Tensor& out) {
  // The logarithm of a sum of complex numbers is beyond the kernel.
  if (!self.is_floating_point()) return fallBack<at::_ops::_logcumsumexp_out>(self, dim, out);
  static const Kernel kernel{"logcumsumexp"};
  at::native::resize_output(out, self.sizes());
  launchScan(kernel, self.scalar_type(), self, dim, out);
  return out;
}

Tensor logCumulativeSumExp(const Tensor& self, int64_t dim) {
  if (!self.is_floating_point()) return fallBack<at::_ops::_logcumsumexp>(self, dim);
  Tensor out = newResult(self.sizes(), {}, self.options());
  return logCumulativeSumExpOut(self, dim, out);
}

} // namespace
} // namespace puone

#include "aten/reduce/cumulative_registrations.inc"
