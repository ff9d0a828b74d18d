// SPDX-License-Identifier: BSD-3-Clause
#include "aten/core/forms.h"

#include <ATen/native/Resize.h>

#include <utility>

#include "aten/core/factory.h"

namespace puone {
namespace {

void checkInplace(
    const at::Tensor& self, c10::IntArrayRef sizes, const c10::TensorOptions& options) {
  TORCH_CHECK(
      options.dtype() == self.dtype(),
      "Bad in-place call: input tensor dtype ",
      self.dtype(),
      " and output tensor dtype ",
      options.dtype(),
      " should match");
  TORCH_CHECK(
      options.device() == self.device(),
      "Bad in-place call: input tensor device ",
      self.device(),
      " and output tensor device ",
      options.device(),
      " should match");
  TORCH_CHECK(
      sizes == self.sizes(),
      "Bad in-place call: input tensor size ",
      self.sizes(),
      " and output tensor size ",
      sizes,
      " should match");
}

} // namespace

void resizeOut(
    const at::Tensor& out,
    c10::IntArrayRef sizes,
    c10::IntArrayRef strides,
    const c10::TensorOptions& options) {
  TORCH_CHECK(
      options.dtype() == out.dtype(),
      "Expected out tensor to have dtype ",
      options.dtype(),
      ", but got ",
      out.dtype(),
      " instead");
  TORCH_CHECK(
      options.device() == out.device(),
      "Expected out tensor to have device ",
      options.device(),
      ", but got ",
      out.device(),
      " instead");
  if (!at::native::resize_output(out, sizes)) return;
  if (!strides.empty()) {
    out.as_strided_(sizes, strides);
  } else if (const auto format = options.memory_format_opt()) {
    out.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  }
}

void settleOutput(
    Form form,
    at::Tensor& output,
    c10::IntArrayRef sizes,
    c10::IntArrayRef strides,
    const c10::TensorOptions& options) {
  switch (form) {
    case Form::kFunctional:
      output = newResult(sizes, strides, options);
      break;
    case Form::kInplace:
      checkInplace(output, sizes, options);
      break;
    case Form::kOut:
      resizeOut(output, sizes, strides, options);
      break;
  }
}

void replaceOutput(
    Form form,
    at::Tensor& output,
    at::Tensor& given,
    c10::IntArrayRef sizes,
    c10::IntArrayRef strides,
    const c10::TensorOptions& options) {
  if (form == Form::kFunctional || strides.empty() || output.strides() == strides) return;
  given = std::exchange(output, newResult(sizes, strides, options));
}

} // namespace puone
