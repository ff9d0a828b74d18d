// SPDX-License-Identifier: BSD-3-Clause
#include "aten/core/host_copy.h"

#include <ATen/EmptyTensor.h>

#include "aten/core/launch.h"
#include "aten/core/mirror.h"
#include "aten/core/operands.h"
#include "aten/core/transfer.h"

namespace puone {
namespace {

using at::Tensor;

// How many of the last dimensions are one contiguous run of memory.
int64_t contiguousDimensions(const Tensor& tensor) {
  int64_t run = 1, count = 0;
  for (int64_t d = tensor.dim() - 1; d >= 0; --d, ++count) {
    if (tensor.size(d) != 1 && tensor.stride(d) != run) break;
    run *= tensor.size(d);
  }
  return count;
}

// Queues a copy for each contiguous run of `dst`; `src` is contiguous.
void queueRuns(const Tensor& dst, const Tensor& src, const Stream& stream) {
  const int64_t outer = dst.dim() - contiguousDimensions(dst);
  const auto bytes = static_cast<int64_t>(dst.itemsize());
  const int64_t runs = c10::multiply_integers(dst.sizes().slice(0, static_cast<size_t>(outer)));
  const int64_t run_bytes = src.numel() / runs * bytes;
  auto* const to = static_cast<char*>(dst.mutable_data_ptr());
  const auto* const from = static_cast<const char*>(src.const_data_ptr());
  for (int64_t run = 0; run < runs; ++run) {
    int64_t offset = 0;
    for (int64_t d = outer - 1, rest = run; d >= 0; rest /= dst.size(d), --d) {
      offset += rest % dst.size(d) * dst.stride(d);
    }
    queueToDevice(
        to + offset * bytes, from + run * run_bytes, static_cast<size_t>(run_bytes), stream);
  }
}

} // namespace

bool hasCopyKernel(const Tensor& dst, const Tensor& src) {
  if (dst.scalar_type() == src.scalar_type() && sameMathBits(dst, src)) {
    return kernel::copy_bits.available();
  }
  const auto to = kernelDtype(dst.scalar_type()), from = kernelDtype(src.scalar_type());
  return to && from && kernel::copy.supports(*to) && kernel::copy.supports(*from);
}

Tensor readToHost(const Tensor& src) {
  ToHost to_host(getCurrentStream(src.device().index()));
  Tensor result = to_host.copy(src);
  to_host.wait();
  return result;
}

void writeFromHost(const Tensor& dst, const Tensor& src) {
  if (dst.numel() == 0) return;
  const bool dense = dst.is_non_overlapping_and_dense();
  const Tensor host =
      dense ? at::detail::empty_strided_cpu(dst.sizes(), dst.strides(), dst.scalar_type())
            : at::detail::empty_cpu(dst.sizes(), dst.scalar_type());
  copyMathBits(host, dst);
  host.copy_(src);
  const Stream stream = getCurrentStream(dst.device().index());
  if (dense) {
    queueToDevice(dst.mutable_data_ptr(), host.const_data_ptr(), dst.nbytes(), stream);
  } else {
    queueRuns(dst, host, stream);
  }
  stream.synchronize();
}

} // namespace puone
