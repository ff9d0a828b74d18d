// SPDX-License-Identifier: BSD-3-Clause
// Pooling: maximum and average, over windows or adaptive, in two and three dimensions. (torch pools
// one dimension as two.)
#include <ATen/native/Pool.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "aten/core/gradient.h"
#include "aten/core/launch.h"
#include "aten/core/output.h"
#include "aten/core/structured.h"
#include "aten/pool/planes.h"
#include "aten/pool/pool_ops.h"
#include "kernels/args/pool.h"
#include "runtime/stream.h"

namespace puone {
namespace {

using at::Tensor;
using c10::IntArrayRef;

bool canPool(const Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case c10::kLong:
    case c10::kHalf:
    case c10::kBFloat16:
    case c10::kFloat:
    case c10::kDouble:
      return true;
    default:
      return false;
  }
}

// How a window moves, each list with a value per dimension or one for all. An empty kernel means
// adaptive pooling, an empty stride the kernel's size.
struct Geometry {
  IntArrayRef kernel;
  IntArrayRef stride;
  IntArrayRef padding;
  IntArrayRef dilation;
};

int64_t at(IntArrayRef list, size_t d, int64_t otherwise) {
  return list.empty() ? otherwise : list.size() == 1 ? list[0] : list[d];
}

// Of `source`, pooled over its last `dimensions` dimensions, and `result`.
puone_pool_args poolArgs(
    const Tensor& source, const Tensor& result, size_t dimensions, const Geometry& geometry) {
  puone_pool_args args{};
  args.dtype = *kernelDtype(source.scalar_type());
  args.planes = planesOf(source, result, dimensions);
  const auto outer = static_cast<size_t>(source.dim()) - dimensions;
  for (puone_pool_axis& axis : args.axes) axis = {1, 1, 1, 1, 0, 1};
  for (size_t d = 0; d < dimensions; ++d) {
    const int64_t kernel = at(geometry.kernel, d, 0);
    args.axes[3 - dimensions + d] = {
        source.sizes()[outer + d],
        result.sizes()[outer + d],
        kernel,
        at(geometry.stride, d, kernel),
        at(geometry.padding, d, 0),
        at(geometry.dilation, d, 1)};
  }
  return args;
}

void launch(
    const kernel::Kernel<puone_pool_args>& kernel,
    const puone_pool_args& args,
    const Tensor& tensor) {
  launchKernel(kernel, args, getCurrentStream(tensor.device().index()));
}

void maxPool(
    const Tensor& source,
    size_t dimensions,
    const Geometry& geometry,
    const Tensor& result,
    const Tensor& indices) {
  if (result.numel() == 0) return;
  const Tensor dense = source.contiguous();
  const ContiguousOutput values(result);
  const ContiguousOutput where(indices);
  puone_pool_args args = poolArgs(source, result, dimensions, geometry);
  args.source = inputData(dense);
  args.result = values.data();
  args.indices = where.data();
  launch(kernel::max_pool, args, source);
  values.copyBack();
  where.copyBack();
}

void maxPoolBackward(
    const Tensor& grad_output,
    const Tensor& indices,
    size_t dimensions,
    const Geometry& geometry,
    const Tensor& grad_input) {
  TORCH_CHECK(
      indices.sizes() == grad_output.sizes(),
      "Expected indices of the gradient's sizes ",
      grad_output.sizes(),
      ", but got ",
      indices.sizes());
  if (grad_input.numel() == 0) return;
  const Tensor dense_grad = grad_output.contiguous();
  const Tensor dense_indices = indices.contiguous();
  const ContiguousOutput values(grad_input);
  puone_pool_args args = poolArgs(grad_input, grad_output, dimensions, geometry);
  args.source = values.data();
  args.result = inputData(dense_grad);
  args.indices = inputData(dense_indices);
  launch(kernel::max_pool_backward, args, grad_input);
  values.copyBack();
}

// What an average is divided by.
struct Divisor {
  bool count_padding = false;
  std::optional<int64_t> fixed = std::nullopt;
};

void avgPool(
    const Tensor& source,
    size_t dimensions,
    const Geometry& geometry,
    const Divisor& divisor,
    const Tensor& result) {
  if (result.numel() == 0) return;
  const Tensor dense = source.contiguous();
  const ContiguousOutput values(result);
  puone_pool_args args = poolArgs(source, result, dimensions, geometry);
  args.count_padding = divisor.count_padding;
  args.divisor = divisor.fixed.value_or(0);
  args.source = inputData(dense);
  args.result = values.data();
  launch(kernel::avg_pool, args, source);
  values.copyBack();
}

void avgPoolBackward(
    const Tensor& grad_output,
    size_t dimensions,
    const Geometry& geometry,
    const Divisor& divisor,
    const Tensor& grad_input) {
  if (grad_input.numel() == 0) return;
  const Tensor dense = grad_output.contiguous();
  const ContiguousOutput values(grad_input);
  puone_pool_args args = poolArgs(grad_input, grad_output, dimensions, geometry);
  args.count_padding = divisor.count_padding;
  args.divisor = divisor.fixed.value_or(0);
  args.source = values.data();
  args.result = inputData(dense);
  launch(kernel::avg_pool_backward, args, grad_input);
  values.copyBack();
}

template <class Meta>
struct Pooled : Meta {
  template <class... Rest>
  static bool supports(const Tensor& first, const Rest&...) {
    return canPool(first);
  }
};

struct MaxPool2d : Pooled<at::meta::structured_max_pool2d_with_indices> {
  void impl(
      const Tensor& self,
      IntArrayRef kernel,
      IntArrayRef stride,
      IntArrayRef padding,
      IntArrayRef dilation,
      bool /*ceil_mode*/,
      const Tensor& out,
      const Tensor& indices) {
    maxPool(self, 2, {kernel, stride, padding, dilation}, out, indices);
  }
};

struct MaxPool2dBackward : Pooled<at::meta::structured_max_pool2d_with_indices_backward> {
  void impl(
      const Tensor& grad_output,
      const Tensor& /*self*/,
      IntArrayRef kernel,
      IntArrayRef stride,
      IntArrayRef padding,
      IntArrayRef dilation,
      bool /*ceil_mode*/,
      const Tensor& indices,
      const Tensor& grad_input) {
    maxPoolBackward(grad_output, indices, 2, {kernel, stride, padding, dilation}, grad_input);
  }
};

template <class Meta, size_t kDimensions>
struct AdaptiveMaxPool : Pooled<Meta> {
  void impl(
      const Tensor& self, IntArrayRef /*output_size*/, const Tensor& out, const Tensor& indices) {
    maxPool(self, kDimensions, {}, out, indices);
  }
};

template <class Meta, size_t kDimensions>
struct AdaptiveMaxPoolBackward : Pooled<Meta> {
  void impl(
      const Tensor& grad_output,
      const Tensor& /*self*/,
      const Tensor& indices,
      const Tensor& grad_input) {
    maxPoolBackward(grad_output, indices, kDimensions, {}, grad_input);
  }
};

struct AvgPool2d : Pooled<at::meta::structured_avg_pool2d> {
  void impl(
      const auto& /*precomputed*/,
      const Tensor& self,
      IntArrayRef kernel,
      IntArrayRef stride,
      IntArrayRef padding,
      bool /*ceil_mode*/,
      bool count_include_pad,
      std::optional<int64_t> divisor,
      const Tensor& out) {
    avgPool(self, 2, {kernel, stride, padding, {}}, {count_include_pad, divisor}, out);
  }
};

struct AvgPool3d : Pooled<at::meta::structured_avg_pool3d> {
  void impl(
      const Tensor& self,
      IntArrayRef kernel,
      IntArrayRef stride,
      IntArrayRef padding,
      bool /*ceil_mode*/,
      bool count_include_pad,
      std::optional<int64_t> divisor,
      const Tensor& out) {
    avgPool(self, 3, {kernel, stride, padding, {}}, {count_include_pad, divisor}, out);
  }
};

template <class Meta, size_t kDimensions>
struct AvgPoolBackward : Pooled<Meta> {
  void impl(
      const Tensor& grad_output,
      const Tensor& /*self*/,
      IntArrayRef kernel,
      IntArrayRef stride,
      IntArrayRef padding,
      bool /*ceil_mode*/,
      bool count_include_pad,
      std::optional<int64_t> divisor,
      const Tensor& grad_input) {
    avgPoolBackward(
        grad_output,
        kDimensions,
        {kernel, stride, padding, {}},
        {count_include_pad, divisor},
        grad_input);
  }
};

// The sizes of a pooled tensor: those of `self` before the last ones, which `pooled` gives.
std::vector<int64_t> pooledSizes(const Tensor& self, IntArrayRef pooled) {
  auto sizes = self.sizes().vec();
  std::copy(pooled.begin(), pooled.end(), sizes.end() - static_cast<int64_t>(pooled.size()));
  return sizes;
}

Tensor emptyLike(const Tensor& self, IntArrayRef sizes) {
  const bool batched = self.dim() == static_cast<int64_t>(sizes.size()) && self.dim() >= 4;
  const auto format = batched ? self.suggest_memory_format() : c10::MemoryFormat::Contiguous;
  return at::empty(sizes, self.options().memory_format(format));
}

void checkAdaptive(const Tensor& self, IntArrayRef output_size, int64_t dimensions) {
  TORCH_CHECK(
      static_cast<int64_t>(output_size.size()) == dimensions,
      "adaptive_avg_pool",
      dimensions,
      "d: output_size must be ",
      dimensions);
  TORCH_CHECK(
      self.dim() == dimensions + 1 || self.dim() == dimensions + 2,
      "adaptive_avg_pool",
      dimensions,
      "d(): Expected ",
      dimensions + 1,
      "D or ",
      dimensions + 2,
      "D tensor, but got ",
      self.sizes());
  for (int64_t d = 1; d <= dimensions; ++d) {
    TORCH_CHECK(
        self.size(-d) > 0,
        "adaptive_avg_pool",
        dimensions,
        "d(): Expected input to have non-zero size for non-batch dimensions, but input has sizes ",
        self.sizes(),
        " with dimension ",
        self.dim() - d,
        " being empty");
  }
}

template <class Overload, int64_t kDimensions>
Tensor adaptiveAvgPool(const Tensor& self, c10::IntArrayRef output_size) {
  if (!canPool(self)) return fallBack<Overload>(self, output_size);
  checkAdaptive(self, output_size, kDimensions);
  const Tensor out = emptyLike(self, pooledSizes(self, output_size));
  avgPool(self, kDimensions, {}, {}, out);
  return out;
}

template <class Overload, int64_t kDimensions>
Tensor& adaptiveAvgPoolOut(const Tensor& self, c10::IntArrayRef output_size, Tensor& out) {
  if (!canPool(self)) return fallBack<Overload>(self, output_size, out);
  checkAdaptive(self, output_size, kDimensions);
  resizeOut(out, pooledSizes(self, output_size), {}, self.options());
  avgPool(self, kDimensions, {}, {}, out);
  return out;
}

void checkAdaptiveGradient(const Tensor& grad_output, const Tensor& self, int64_t dimensions) {
  planesOf(self, grad_output, static_cast<size_t>(dimensions));
  const int64_t outer = std::max<int64_t>(self.dim() - dimensions, 0);
  checkAdaptive(grad_output, grad_output.sizes().slice(static_cast<size_t>(outer)), dimensions);
}

template <class Overload, int64_t kDimensions>
Tensor adaptiveAvgPoolBackward(const Tensor& grad_output, const Tensor& self) {
  if (!canPool(self)) return fallBack<Overload>(grad_output, self);
  checkAdaptiveGradient(grad_output, self, kDimensions);
  const Tensor grad_input = emptyLike(self, self.sizes());
  avgPoolBackward(grad_output, kDimensions, {}, {}, grad_input);
  return grad_input;
}

Tensor& adaptiveAvgPool3dBackwardOut(
    const Tensor& grad_output, const Tensor& self, Tensor& grad_input) {
  if (!canPool(self)) {
    return fallBack<at::_ops::adaptive_avg_pool3d_backward_grad_input>(
        grad_output, self, grad_input);
  }
  checkAdaptiveGradient(grad_output, self, 3);
  resizeOut(grad_input, self.sizes(), {}, self.options());
  avgPoolBackward(grad_output, 3, {}, {}, grad_input);
  return grad_input;
}

std::vector<int64_t> maxPool3dSizes(const Tensor& self, const Geometry& geometry, bool ceil_mode) {
  TORCH_CHECK(
      self.dim() == 4 || self.dim() == 5,
      "max_pool3d_with_indices: expected 4D or 5D input, but got ",
      self.sizes());
  const auto of = [](IntArrayRef list, int64_t otherwise) {
    return std::array<int64_t, 3>{
        at(list, 0, otherwise), at(list, 1, otherwise), at(list, 2, otherwise)};
  };
  const auto kernel = of(geometry.kernel, 1);
  const auto stride = geometry.stride.empty() ? kernel : of(geometry.stride, 1);
  const auto padding = of(geometry.padding, 0);
  const auto dilation = of(geometry.dilation, 1);
  std::array<int64_t, 3> sizes{};
  for (size_t d = 0; d < 3; ++d) {
    sizes[d] = at::native::pooling_output_shape<int64_t>(
        self.sizes()[static_cast<size_t>(self.dim()) - 3 + d],
        kernel[d],
        padding[d],
        stride[d],
        dilation[d],
        ceil_mode);
  }
  at::native::pool3d_shape_check(
      self,
      self.size(-4),
      static_cast<int>(kernel[0]),
      static_cast<int>(kernel[1]),
      static_cast<int>(kernel[2]),
      static_cast<int>(stride[0]),
      static_cast<int>(stride[1]),
      static_cast<int>(stride[2]),
      static_cast<int>(padding[0]),
      static_cast<int>(padding[1]),
      static_cast<int>(padding[2]),
      static_cast<int>(dilation[0]),
      static_cast<int>(dilation[1]),
      static_cast<int>(dilation[2]),
      self.size(-3),
      self.size(-2),
      self.size(-1),
      sizes[0],
      sizes[1],
      sizes[2],
      "max_pool3d_with_indices()");
  return pooledSizes(self, sizes);
}

std::tuple<Tensor&, Tensor&> maxPool3dOut(
    const Tensor& self,
    IntArrayRef kernel,
    IntArrayRef stride,
    IntArrayRef padding,
    IntArrayRef dilation,
    bool ceil_mode,
    Tensor& out,
    Tensor& indices) {
  if (!canPool(self)) {
    return fallBack<at::_ops::max_pool3d_with_indices_out>(
        self, kernel, stride, padding, dilation, ceil_mode, out, indices);
  }
  const Geometry geometry{kernel, stride, padding, dilation};
  const auto sizes = maxPool3dSizes(self, geometry, ceil_mode);
  resizeOut(out, sizes, {}, self.options());
  resizeOut(indices, sizes, {}, self.options().dtype(c10::kLong));
  maxPool(self, 3, geometry, out, indices);
  return {out, indices};
}

std::tuple<Tensor, Tensor> maxPool3d(
    const Tensor& self,
    IntArrayRef kernel,
    IntArrayRef stride,
    IntArrayRef padding,
    IntArrayRef dilation,
    bool ceil_mode) {
  if (!canPool(self)) {
    return fallBack<at::_ops::max_pool3d_with_indices>(
        self, kernel, stride, padding, dilation, ceil_mode);
  }
  const Geometry geometry{kernel, stride, padding, dilation};
  const auto sizes = maxPool3dSizes(self, geometry, ceil_mode);
  const Tensor out = emptyLike(self, sizes);
  const Tensor indices =
      at::empty(sizes, self.options().dtype(c10::kLong).memory_format(out.suggest_memory_format()));
  maxPool(self, 3, geometry, out, indices);
  return {out, indices};
}

Tensor& maxPool3dBackwardOut(
    const Tensor& grad_output,
    const Tensor& self,
    IntArrayRef kernel,
    IntArrayRef stride,
    IntArrayRef padding,
    IntArrayRef dilation,
    bool ceil_mode,
    const Tensor& indices,
    Tensor& grad_input) {
  if (!canPool(self)) {
    return fallBack<at::_ops::max_pool3d_with_indices_backward_grad_input>(
        grad_output, self, kernel, stride, padding, dilation, ceil_mode, indices, grad_input);
  }
  const Geometry geometry{kernel, stride, padding, dilation};
  checkGradientSizes(grad_output, maxPool3dSizes(self, geometry, ceil_mode));
  resizeOut(grad_input, self.sizes(), {}, self.options());
  maxPoolBackward(grad_output, indices, 3, geometry, grad_input);
  return grad_input;
}

Tensor maxPool3dBackward(
    const Tensor& grad_output,
    const Tensor& self,
    IntArrayRef kernel,
    IntArrayRef stride,
    IntArrayRef padding,
    IntArrayRef dilation,
    bool ceil_mode,
    const Tensor& indices) {
  Tensor grad_input = emptyLike(self, self.sizes());
  return maxPool3dBackwardOut(
      grad_output, self, kernel, stride, padding, dilation, ceil_mode, indices, grad_input);
}

using AdaptiveMaxPool2d = AdaptiveMaxPool<at::meta::structured_adaptive_max_pool2d, 2>;
using AdaptiveMaxPool3d = AdaptiveMaxPool<at::meta::structured_adaptive_max_pool3d, 3>;
using AdaptiveMaxPool2dBackward =
    AdaptiveMaxPoolBackward<at::meta::structured_adaptive_max_pool2d_backward, 2>;
using AdaptiveMaxPool3dBackward =
    AdaptiveMaxPoolBackward<at::meta::structured_adaptive_max_pool3d_backward, 3>;
using AvgPool2dBackward = AvgPoolBackward<at::meta::structured_avg_pool2d_backward, 2>;
using AvgPool3dBackward = AvgPoolBackward<at::meta::structured_avg_pool3d_backward, 3>;

} // namespace
} // namespace puone

#include "aten/pool/pool_registrations.inc"
