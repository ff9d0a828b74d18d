// SPDX-License-Identifier: BSD-3-Clause
// sort, topk, kthvalue, median, mode.
#include <ATen/WrapDimUtils.h>
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/ops/reshape_ops.h>
#include <torch/library.h>

#include <limits>
#include <string>

#include "aten/core/elementwise.h"
#include "aten/core/factory.h"
#include "aten/core/launch.h"
#include "aten/core/output.h"
#include "aten/sort/order_ops.h"
#include "kernels/args/order.h"
#include "runtime/stream.h"

namespace puone {
namespace {

using at::Tensor;
using c10::ScalarType;
using OrderKernel = kernel::Kernel<puone_order_args>;

// The strides of an output along the input's dimensions, of which `dim` may be missing.
void setOutput(puone_operand& operand, const Tensor& out, int64_t ndim, int64_t dim) {
  operand.data = out.mutable_data_ptr();
  const bool keeps = out.dim() == ndim;
  for (int64_t d = 0; d < ndim; ++d) {
    if (d == dim && !keeps) continue;
    const int64_t at = keeps || d < dim ? d : d - 1;
    operand.strides[ndim - 1 - d] = out.stride(at) * static_cast<int64_t>(out.itemsize());
  }
}

void launchOrder(
    const char* name,
    const OrderKernel& kernel,
    const Tensor& self,
    int64_t dim,
    const Tensor& values,
    const Tensor& indices,
    int64_t count = 0,
    bool descending = false) {
  checkType(name, self.scalar_type(), kOrdered);
  if (values.numel() == 0) return;
  const int64_t ndim = self.dim();
  TORCH_CHECK(
      ndim <= PUONE_MAX_DIMS, "puone: cannot order more than ", PUONE_MAX_DIMS, " dimensions");
  dim = at::maybe_wrap_dim(dim, ndim);
  const Tensor items = newResult({self.numel(), 16}, {}, self.options().dtype(ScalarType::Byte));
  puone_order_args args{};
  args.ndim = static_cast<int32_t>(ndim);
  args.compute = *kernelDtype(computeType(self.scalar_type()));
  args.ordered = static_cast<int32_t>(ndim - 1 - dim);
  args.dtype = *kernelDtype(self.scalar_type());
  args.descending = descending;
  args.count = count;
  args.in.data = inputData(self);
  args.items = items.mutable_data_ptr();
  for (int64_t d = 0; d < ndim; ++d) {
    args.sizes[ndim - 1 - d] = self.size(d);
    args.in.strides[ndim - 1 - d] = self.stride(d) * static_cast<int64_t>(self.itemsize());
  }
  setOutput(args.outs[0], values, ndim, dim);
  setOutput(args.outs[1], indices, ndim, dim);
  launchKernel(kernel, args, getCurrentStream(self.device().index()));
}

struct Sort : at::meta::structured_sort_stable {
  void impl(
      const Tensor& self,
      std::optional<bool>,
      int64_t dim,
      bool descending,
      const Tensor& values,
      const Tensor& indices) {
    const int64_t size = self.dim() > 0 ? self.size(at::maybe_wrap_dim(dim, self.dim())) : 1;
    launchOrder("sort", kernel::sort, self, dim, values, indices, size, descending);
  }
};

struct Topk : at::meta::structured_topk {
  void impl(
      const Tensor& self,
      int64_t k,
      int64_t dim,
      bool largest,
      bool,
      const Tensor& values,
      const Tensor& indices) {
    launchOrder("topk", kernel::sort, self, dim, values, indices, k, largest);
  }
};

using Outputs = std::tuple<Tensor&, Tensor&>;

// Makes the outputs of an operator that keeps one element of each line.
int64_t prepare(
    const char* name,
    const Tensor& self,
    int64_t dim,
    bool keepdim,
    Tensor& values,
    Tensor& indices) {
  dim = at::maybe_wrap_dim(dim, self.dim());
  at::native::zero_numel_check_dims(self, dim, name);
  for (const Tensor& out : {values, indices}) {
    TORCH_CHECK(
        out.device() == self.device(),
        "Expected all tensors to be on the same device, but got tensors on ",
        self.device(),
        " and ",
        out.device(),
        " in ",
        name);
  }
  TORCH_CHECK(
      values.scalar_type() == self.scalar_type(),
      "Expected out tensor to have dtype ",
      self.scalar_type(),
      ", but got ",
      values.scalar_type(),
      " instead");
  TORCH_CHECK(
      indices.scalar_type() == ScalarType::Long,
      "Expected out tensor to have dtype long int, but got ",
      indices.scalar_type(),
      " instead");
  auto sizes = c10::DimVector(self.sizes());
  if (!sizes.empty() && keepdim) sizes[static_cast<size_t>(dim)] = 1;
  if (!sizes.empty() && !keepdim) sizes.erase(sizes.begin() + dim);
  at::native::resize_output(values, sizes);
  at::native::resize_output(indices, sizes);
  return dim;
}

Outputs kthvalueOut(
    const Tensor& self, int64_t k, int64_t dim, bool keepdim, Tensor& values, Tensor& indices) {
  if (!isComputable(self.scalar_type())) {
    return fallBack<at::_ops::kthvalue_values>(self, k, dim, keepdim, values, indices);
  }
  dim = prepare("kthvalue()", self, dim, keepdim, values, indices);
  const int64_t size = self.dim() > 0 ? self.size(dim) : 1;
  TORCH_CHECK(
      k >= 1 && k <= size, "kthvalue(): selected number k out of range for dimension ", dim);
  launchOrder("kthvalue", kernel::kth, self, dim, values, indices, k);
  return {values, indices};
}

template <class Overload, const OrderKernel& kKernel, OperatorName kName>
Outputs oneOfLineOut(
    const Tensor& self, int64_t dim, bool keepdim, Tensor& values, Tensor& indices) {
  static constexpr OperatorName name = kName;
  if (!isComputable(self.scalar_type())) {
    return fallBack<Overload>(self, dim, keepdim, values, indices);
  }
  dim = prepare((std::string(name.text) + "()").c_str(), self, dim, keepdim, values, indices);
  launchOrder(name.text, kKernel, self, dim, values, indices);
  return {values, indices};
}

std::tuple<Tensor, Tensor> mode(const Tensor& self, int64_t dim, bool keepdim) {
  Tensor values = newResult({0}, {}, self.options());
  Tensor indices = newResult({0}, {}, self.options().dtype(ScalarType::Long));
  at::_ops::mode_values::call(self, dim, keepdim, values, indices);
  return {values, indices};
}

template <class Overload, const OrderKernel& kKernel, OperatorName kName>
Tensor medianOfAll(const Tensor& self) {
  static constexpr OperatorName name = kName;
  if (!isComputable(self.scalar_type())) return fallBack<Overload>(self);
  Tensor value = newResult({}, {}, self.options());
  if (self.numel() == 0) return value.fill_(std::numeric_limits<double>::quiet_NaN());
  const Tensor index = newResult({}, {}, self.options().dtype(ScalarType::Long));
  const Tensor flat = at::_ops::reshape::call(self, c10::SymInt(-1));
  launchOrder(name.text, kKernel, flat, 0, value, index);
  return value;
}

} // namespace
} // namespace puone

#include "aten/sort/order_registrations.inc"
