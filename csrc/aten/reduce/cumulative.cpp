// SPDX-License-Identifier: BSD-3-Clause
// Running sums, products, extremes and log-sum-exps.
#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

#include "aten/core/elementwise.h"
#include "aten/core/launch.h"
#include "aten/core/output.h"
#include "aten/reduce/cumulative_ops.h"
#include "kernels/args/reduction.h"
#include "runtime/stream.h"

namespace puone {
namespace {

using at::Tensor;
using c10::ScalarType;
using ScanKernel = kernel::Kernel<puone_scan_args>;

template <class... Out>
void launchScan(
    const ScanKernel& kernel,
    ScalarType compute,
    const Tensor& self,
    int64_t dim,
    const Out&... outs) {
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
  const auto set = [&](puone_operand& operand, int32_t& dtype, const Tensor& tensor, void* data) {
    dtype = *kernelDtype(tensor.scalar_type());
    operand.data = data;
    for (int64_t d = 0; d < ndim; ++d) {
      operand.strides[ndim - 1 - d] = tensor.stride(d) * static_cast<int64_t>(tensor.itemsize());
    }
  };
  set(args.in, args.in_dtype, self, inputData(self));
  int o = 0;
  (..., (set(args.outs[o], args.out_dtypes[o], outs, outputData(outs)), ++o));
  launchKernel(kernel, args, getCurrentStream(self.device().index()));
}

template <class Meta, const ScanKernel& kKernel>
struct CumulativeTotal : Meta {
  void impl(const Tensor& self, int64_t dim, std::optional<ScalarType>, const Tensor& out) {
    const bool integers = c10::isIntegralType(out.scalar_type(), /*includeBool=*/true);
    launchScan(kKernel, integers ? ScalarType::Long : out.scalar_type(), self, dim, out);
  }
};

template <class Overload, const ScanKernel& kKernel>
void cumulativeExtreme(const Tensor& self, Tensor& values, Tensor& indices, int64_t dim) {
  if (!isComputable(self.scalar_type())) return fallBack<Overload>(self, values, indices, dim);
  checkType(kKernel.name(), self.scalar_type(), kOrdered);
  launchScan(kKernel, self.scalar_type(), self, dim, values, indices);
}

Tensor& logCumulativeSumExpOut(const Tensor& self, int64_t dim, Tensor& out) {
  // The logarithm of a sum of complex numbers is beyond the kernel.
  if (!self.is_floating_point()) return fallBack<at::_ops::_logcumsumexp_out>(self, dim, out);
  at::native::resize_output(out, self.sizes());
  launchScan(kernel::logcumsumexp, self.scalar_type(), self, dim, out);
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
