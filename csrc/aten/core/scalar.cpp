// SPDX-License-Identifier: BSD-3-Clause
// One value in or out: item(), fill_ and zero_; and record_stream.
#include <ATen/EmptyTensor.h>
#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <torch/library.h>

#include <cstring>

#include "aten/core/element.h"
#include "aten/core/host_copy.h"
#include "aten/core/launch.h"
#include "aten/core/operands.h"
#include "aten/core/scalar_ops.h"
#include "aten/core/scalar_types.h"
#include "aten/core/transfer.h"
#include "runtime/device_allocator.h"
#include "runtime/driver.h"
#include "runtime/stream.h"

namespace puone {
namespace {

using at::Tensor;

// [quote: item]
c10::Scalar localScalarDense(const Tensor& self) {
  // Not on the stack: after a failed synchronize the copy may still be on its way.
  thread_local struct {
    alignas(16) unsigned char bytes[16];
  } element;
  const Stream stream = getCurrentStream(self.device().index());
  queueToHost(element.bytes, self.const_data_ptr(), self.itemsize(), stream);
  stream.synchronize();
  c10::Scalar result;
  PUONE_DISPATCH_SCALAR_TYPES(self.scalar_type(), "_local_scalar_dense", [&] {
    scalar_t value;
    std::memcpy(static_cast<void*>(&value), element.bytes, sizeof(scalar_t));
    result = c10::Scalar(value);
  });
  return result;
}
// [end: item]

// Fills with the element in `args`.
void fill(const Tensor& self, puone_fill_args& args) {
  if (!kernel::fill.available()) {
    const Tensor element = at::detail::empty_cpu({}, self.scalar_type());
    std::memcpy(element.mutable_data_ptr(), args.value, self.itemsize());
    copyMathBits(element, self);
    writeFromHost(self, element);
    return;
  }
  const Stream stream = getCurrentStream(self.device().index());
  args.element_size = static_cast<int32_t>(self.itemsize());
  if (self.is_non_overlapping_and_dense()) {
    args.ndim = 1;
    args.sizes[0] = self.numel();
    args.out.data = self.data_ptr();
    args.out.strides[0] = args.element_size;
  } else {
    // Writing one value twice is harmless, so an expanded tensor may be filled.
    const auto iter = at::TensorIteratorConfig()
                          .set_check_mem_overlap(false)
                          .check_all_same_dtype(false) // there is no input to take a dtype from
                          .add_output(self)
                          .resize_outputs(false)
                          .check_all_same_dtype(false)
                          .build();
    setShape(args, iter);
    setOperand(args.out, iter, 0);
  }
  launchKernel(kernel::fill, args, stream);
}

Tensor& fillScalar(Tensor& self, const c10::Scalar& value) {
  puone_fill_args args{};
  // Before the look at numel, so that a value that does not fit is always an error.
  putElement(args.value, value, self.scalar_type());
  if (self.numel() != 0) fill(self, args);
  return self;
}

Tensor& fillTensor(Tensor& self, const Tensor& value) {
  TORCH_CHECK(
      value.dim() == 0,
      "fill_ only supports 0-dimension value tensor but got tensor with ",
      value.dim(),
      " dimensions.");
  if (value.device() != self.device()) return fillScalar(self, value.item());
  self.copy_(value.is_alias_of(self) ? value.clone() : value);
  return self;
}

Tensor& zero(Tensor& self) {
  if (self.numel() == 0) return self;
  if (self.is_non_overlapping_and_dense()) {
    const Stream stream = getCurrentStream(self.device().index());
    PUONE_CHECK(hal().memset_async(self.data_ptr(), 0, self.nbytes(), stream.handle()));
  } else {
    puone_fill_args args{};
    fill(self, args);
  }
  return self;
}

void recordStream(Tensor& self, c10::Stream stream) {
  deviceAllocator().recordStream(self.storage().data_ptr(), stream);
}

} // namespace
} // namespace puone

#include "aten/core/scalar_registrations.inc"
