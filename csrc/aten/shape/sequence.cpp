// SPDX-License-Identifier: BSD-3-Clause
// Factories whose elements depend on their position: arange, range, linspace, logspace, eye, the
// Kaiser window and the indices of triangles.
#include <ATen/MemoryOverlap.h>
#include <ATen/native/RangeUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <torch/library.h>

#include <cmath>
#include <cstring>

#include "aten/core/element.h"
#include "aten/core/factory.h"
#include "aten/core/launch.h"
#include "aten/core/operands.h"
#include "aten/core/output.h"
#include "aten/shape/sequence_ops.h"
#include "kernels/args/shape.h"
#include "runtime/device.h"
#include "runtime/stream.h"

namespace puone {
namespace {

using at::Tensor;
using c10::Scalar;
using c10::ScalarType;

// ---- progressions ----

// Fills `out`, which is of any strides, with a progression of its own number of elements.
void launchSequence(
    const Tensor& out,
    ScalarType compute,
    puone_progression progression,
    const Scalar& start,
    const Scalar& step,
    const Scalar& end,
    double base) {
  if (out.numel() == 0) return;
  TORCH_CHECK_NOT_IMPLEMENTED(
      kernelDtype(out.scalar_type()), "no sequence of ", out.scalar_type(), " on this device");
  const bool flat = out.is_contiguous() || out.dim() == 1;
  const Tensor target = flat ? out : newResult(out.sizes(), {}, out.options());
  puone_sequence_args args{};
  args.n = target.numel();
  args.out = outputData(target);
  args.out_stride =
      static_cast<int64_t>(target.itemsize()) * (target.dim() == 1 ? target.stride(0) : int64_t{1});
  args.dtype = *kernelDtype(target.scalar_type());
  args.compute = *kernelDtype(compute);
  args.progression = progression;
  putElement(args.start, start, compute);
  putElement(args.step, step, compute);
  putElement(args.end, end, compute);
  args.base = base;
  launchKernel(kernel::sequence, args, getCurrentStream(out.device().index()));
  if (!flat) out.copy_(target);
}

// The type in which start + i * step is exact enough.
ScalarType arithmeticType(ScalarType type) {
  if (c10::isComplexType(type)) return ScalarType::ComplexDouble;
  return c10::isIntegralType(type, true) ? ScalarType::Long : ScalarType::Double;
}

// Gives `out` a length, unless it already has as many elements; torch warns about that.
void resizeSequence(const char* name, Tensor& out, int64_t length) {
  if (out.numel() == length) return;
  if (out.numel() > 0) {
    TORCH_WARN(
        "The number of elements in the out tensor of shape ",
        out.sizes(),
        " is ",
        out.numel(),
        " which does not match the computed number of elements ",
        length,
        ". Note that this may occur as a result of rounding error. The out tensor will be resized "
        "to a tensor of shape (",
        length,
        ",). (",
        name,
        ")");
  }
  out.resize_({length});
}

Tensor& arangeOut(const Scalar& start, const Scalar& end, const Scalar& step, Tensor& out) {
  const int64_t length = out.scalar_type() == c10::kLong
                             ? at::native::compute_arange_size<int64_t>(start, end, step)
                             : at::native::compute_arange_size<double>(start, end, step);
  resizeSequence("arange", out, length);
  at::assert_no_internal_overlap(out);
  launchSequence(out, arithmeticType(out.scalar_type()), PUONE_FROM_START, start, step, start, 0);
  return out;
}

Tensor& rangeOut(const Scalar& start, const Scalar& end, const Scalar& step, Tensor& out) {
  at::native::arange_check_bounds(start, end, step);
  const double steps = (end.to<double>() - start.to<double>()) / step.to<double>();
  const auto length = static_cast<int64_t>(steps + 1);
  if (out.numel() != length) out.resize_({length});
  launchSequence(out, arithmeticType(out.scalar_type()), PUONE_FROM_START, start, step, start, 0);
  return out;
}

// The nearest number of the type. The CPU takes both ends and the step in the result's type, and
// results are compared with its.
double rounded(double value, ScalarType type) {
  if (c10::isIntegralType(type, true)) return static_cast<double>(static_cast<int64_t>(value));
  switch (type) {
    case ScalarType::Half:
      return static_cast<c10::Half>(static_cast<float>(value));
    case ScalarType::BFloat16:
      return static_cast<c10::BFloat16>(static_cast<float>(value));
    case ScalarType::Float:
      return static_cast<float>(value);
    default:
      return value;
  }
}

struct Span {
  Scalar start, end, step;

  Span(const Scalar& given_start, const Scalar& given_end, int64_t steps, ScalarType type) {
    const auto parts = static_cast<double>(std::max<int64_t>(1, steps - 1));
    if (c10::isComplexType(type)) {
      const auto first = given_start.to<c10::complex<double>>();
      const auto last = given_end.to<c10::complex<double>>();
      start = first;
      end = steps == 1 ? first : last;
      step = (last - first) / parts;
      return;
    }
    const double first = rounded(given_start.to<double>(), type);
    const double last = rounded(given_end.to<double>(), type);
    const double exact = (last - first) / parts;
    start = first;
    end = steps == 1 ? first : last;
    step = c10::isIntegralType(type, true) ? exact : rounded(exact, type);
  }
};

Tensor& spaced(
    const char* name,
    const Scalar& start,
    const Scalar& end,
    int64_t steps,
    puone_progression progression,
    double base,
    Tensor& out) {
  TORCH_CHECK(steps >= 0, "number of steps must be non-negative");
  if (out.numel() != steps) at::native::resize_output(out, {steps});
  at::assert_no_internal_overlap(out);
  const ScalarType type = out.scalar_type();
  TORCH_CHECK_NOT_IMPLEMENTED(
      type != c10::kBool || progression != PUONE_POWERS,
      "\"",
      name,
      "\" not implemented for 'Bool'");
  const Span span(start, end, steps, type);
  const ScalarType compute =
      c10::isComplexType(type) ? ScalarType::ComplexDouble : ScalarType::Double;
  launchSequence(out, compute, progression, span.start, span.step, span.end, base);
  return out;
}

Tensor& linspaceOut(const Scalar& start, const Scalar& end, int64_t steps, Tensor& out) {
  return spaced("linspace", start, end, steps, PUONE_FROM_BOTH, 0, out);
}

Tensor& logspaceOut(
    const Scalar& start, const Scalar& end, int64_t steps, double base, Tensor& out) {
  return spaced("logspace", start, end, steps, PUONE_POWERS, base, out);
}

// ---- the Kaiser window: torch's composite form needs a kernel of a DispatchStub ----

Tensor kaiserWindowBeta(
    int64_t length,
    bool periodic,
    double beta,
    std::optional<ScalarType> given_dtype,
    std::optional<c10::Layout> layout,
    std::optional<c10::Device> device,
    std::optional<bool> pin_memory) {
  const ScalarType dtype = c10::dtype_or_default(given_dtype);
  TORCH_CHECK(
      c10::isFloatingType(dtype) || c10::isComplexType(dtype),
      "kaiser_window expects floating point dtypes, got: ",
      dtype);
  TORCH_CHECK(
      length >= 0, "kaiser_window requires non-negative window_length, got window_length=", length);
  TORCH_CHECK(
      c10::layout_or_default(layout) == c10::Layout::Strided,
      "kaiser_window is not implemented for sparse types, got: ",
      *layout);
  TORCH_CHECK(!c10::pinned_memory_or_default(pin_memory), "Only dense CPU tensors can be pinned");
  Tensor out = newResult(
      {length}, {}, c10::TensorOptions(device.value_or(c10::Device(kDeviceType))).dtype(dtype));
  if (length == 1) return out.fill_(1);
  const auto last = static_cast<double>(periodic ? length : length - 1);
  launchSequence(out, ScalarType::Double, PUONE_KAISER, -1, 2 / last, 1, beta);
  return out;
}

Tensor kaiserWindowPeriodic(
    int64_t length,
    bool periodic,
    std::optional<ScalarType> dtype,
    std::optional<c10::Layout> layout,
    std::optional<c10::Device> device,
    std::optional<bool> pin_memory) {
  return kaiserWindowBeta(length, periodic, 12, dtype, layout, device, pin_memory);
}

Tensor kaiserWindow(
    int64_t length,
    std::optional<ScalarType> dtype,
    std::optional<c10::Layout> layout,
    std::optional<c10::Device> device,
    std::optional<bool> pin_memory) {
  return kaiserWindowBeta(length, true, 12, dtype, layout, device, pin_memory);
}

// ---- matrices ----

Tensor& eyeOut(int64_t rows, int64_t columns, Tensor& out) {
  TORCH_CHECK(rows >= 0, "n must be greater or equal to 0, got ", rows);
  TORCH_CHECK(columns >= 0, "m must be greater or equal to 0, got ", columns);
  out.resize_({rows, columns});
  out.zero_();
  out.diagonal().fill_(1);
  return out;
}

Tensor& eyeSquareOut(int64_t n, Tensor& out) {
  return eyeOut(n, n, out);
}

Tensor triangleIndices(
    int64_t rows,
    int64_t columns,
    int64_t diagonal,
    bool upper,
    std::optional<ScalarType> given_dtype,
    std::optional<c10::Layout> layout,
    std::optional<c10::Device> given_device,
    std::optional<bool> pin_memory) {
  at::native::check_args(rows, columns, layout);
  TORCH_CHECK(!c10::pinned_memory_or_default(pin_memory), "Only dense CPU tensors can be pinned");
  const ScalarType dtype = given_dtype.value_or(c10::kLong);
  TORCH_CHECK_NOT_IMPLEMENTED(
      dtype == c10::kLong || dtype == c10::kInt,
      "\"",
      upper ? "triu_indices" : "tril_indices",
      "\" not implemented for '",
      dtype,
      "'");
  puone_triangle_indices_args args{};
  args.rows = rows;
  args.columns = columns;
  args.diagonal = diagonal;
  args.upper = upper;
  args.dtype = *kernelDtype(dtype);
  args.count = upper ? rows * columns - at::native::get_tril_size(rows, columns, diagonal - 1)
                     : at::native::get_tril_size(rows, columns, diagonal);
  const c10::Device device = given_device.value_or(c10::Device(kDeviceType));
  Tensor out = newResult({2, args.count}, {}, c10::TensorOptions(device).dtype(dtype));
  if (args.count == 0) return out;
  args.out = outputData(out);
  launchKernel(kernel::triangle_indices, args, getCurrentStream(out.device().index()));
  return out;
}

template <bool kUpper>
Tensor triangleIndices(
    int64_t rows,
    int64_t columns,
    int64_t diagonal,
    std::optional<ScalarType> dtype,
    std::optional<c10::Layout> layout,
    std::optional<c10::Device> device,
    std::optional<bool> pin_memory) {
  return triangleIndices(rows, columns, diagonal, kUpper, dtype, layout, device, pin_memory);
}

} // namespace
} // namespace puone

#include "aten/shape/sequence_registrations.inc"
