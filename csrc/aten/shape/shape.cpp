// SPDX-License-Identifier: BSD-3-Clause
// Operators that put elements in another place: triangles, flips, rolls, windows.
#include <ATen/MemoryOverlap.h>
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/native/Resize.h>
#include <ATen/native/im2col_shape_check.h>
#include <ATen/ops/_reshape_alias.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include "aten/core/factory.h"
#include "aten/core/gradient.h"
#include "aten/core/launch.h"
#include "aten/core/output.h"
#include "aten/core/structured.h"
#include "aten/shape/shape_ops.h"
#include "kernels/args/shape.h"
#include "runtime/stream.h"

namespace puone {
namespace {

using at::Tensor;

Stream streamOf(const Tensor& tensor) {
  return getCurrentStream(tensor.device().index());
}

// Dimensions innermost first, none merged.
template <class Args>
void setDimensions(Args& args, const Tensor& out) {
  TORCH_CHECK(
      out.dim() <= PUONE_MAX_DIMS,
      "puone: tensor has too many (>",
      PUONE_MAX_DIMS,
      ") dimensions for this operator");
  args.ndim = static_cast<int32_t>(out.dim());
  args.element_size = static_cast<int32_t>(out.itemsize());
  std::copy(out.sizes().rbegin(), out.sizes().rend(), args.sizes);
}

void setOperand(puone_operand& operand, const Tensor& tensor, void* data) {
  operand.data = data;
  const auto size = static_cast<int64_t>(tensor.itemsize());
  std::transform(
      tensor.strides().rbegin(), tensor.strides().rend(), operand.strides, [&](int64_t stride) {
        return stride * size;
      });
}

// ---- tril, triu ----

template <class Meta, bool kUpper>
struct Triangle : Meta {
  static bool supports(const Tensor& /*self*/, const auto&... /*others*/) {
    return true;
  }
  void impl(const Tensor& self, int64_t diagonal, const Tensor& out) {
    if (out.numel() == 0) return;
    puone_triangle_args args{};
    args.diagonal = diagonal;
    args.upper = kUpper;
    setDimensions(args, out);
    setOperand(args.out, out, outputData(out));
    setOperand(args.in, self, inputData(self));
    launchKernel(kernel::triangle, args, streamOf(out));
  }
};

// ---- flip, channel_shuffle ----

Tensor flip(const Tensor& self, c10::IntArrayRef dims) {
  const auto flipped = at::dim_list_to_bitset(dims, self.dim());
  Tensor out = at::empty_like(self, self.options());
  if (out.numel() == 0) return out;
  puone_copy_bits_args args{};
  setDimensions(args, out);
  setOperand(args.out, out, outputData(out));
  setOperand(args.in, self, inputData(self));
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (!flipped[static_cast<size_t>(d)]) continue;
    int64_t& stride = args.in.strides[self.dim() - 1 - d];
    args.in.data = static_cast<char*>(args.in.data) + stride * (self.size(d) - 1);
    stride = -stride;
  }
  launchKernel(kernel::copy_bits, args, streamOf(out));
  return out;
}

Tensor channelShuffle(const Tensor& self, int64_t groups) {
  TORCH_CHECK(
      self.dim() > 2,
      "channel_shuffle expects input with > 2 dims, but got input with sizes ",
      self.sizes());
  const int64_t channels = self.size(1);
  TORCH_CHECK(
      groups > 0,
      "Number of groups to divide channels in must be positive. Value of groups:",
      groups);
  TORCH_CHECK(
      channels % groups == 0,
      "Number of channels must be divisible by groups. Got ",
      channels,
      " channels and ",
      groups,
      " groups.");
  const Tensor grouped = self.reshape({self.size(0), groups, channels / groups, -1});
  return grouped.transpose(1, 2).reshape(self.sizes());
}

// ---- repeat_interleave ----

Tensor repeatInterleave(const Tensor& repeats, std::optional<int64_t> output_size) {
  TORCH_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  TORCH_CHECK(
      repeats.scalar_type() == c10::kLong || repeats.scalar_type() == c10::kInt,
      "repeats has to be Long or Int tensor");
  if (repeats.numel() == 0) return at::empty_like(repeats);
  const Tensor counts = repeats.contiguous();
  const Tensor ends = counts.cumsum(0, c10::kLong);
  const int64_t size = output_size ? *output_size : ends.select(0, -1).item<int64_t>();
  TORCH_CHECK(size >= 0, "repeats can not be negative");
  Tensor out = newResult({size}, {}, repeats.options());
  puone_repeat_args args{};
  args.n = counts.numel();
  args.out_size = size;
  args.dtype = *kernelDtype(counts.scalar_type());
  args.repeats = inputData(counts);
  args.ends = inputData(ends);
  args.out = outputData(out);
  launchKernel(kernel::repeat_interleave, args, streamOf(out));
  return out;
}

// ---- windows: each offset in a window is a strided slice, added in order ----

Tensor unfoldBackward(
    const Tensor& grad, c10::IntArrayRef sizes, int64_t dim, int64_t size, int64_t step) {
  Tensor result = at::zeros(sizes, grad.options());
  const Tensor windows = result.unfold(dim, size, step); // refuses what no window has
  checkGradientSizes(grad, windows.sizes());
  if (grad.numel() == 0) return result;
  if (sizes.empty()) { // the window of a number is the number
    result.add_(grad.reshape({}));
    return result;
  }
  if (step >= size) {
    windows.copy_(grad);
    return result;
  }
  const int64_t along = at::maybe_wrap_dim(dim, result.dim());
  const int64_t span = (grad.size(along) - 1) * step + 1;
  for (int64_t k = 0; k < size; ++k) {
    result.slice(along, k, k + span, step).add_(grad.select(-1, k));
  }
  return result;
}

// The geometry of im2col, for both spatial dimensions.
struct Windows {
  c10::IntArrayRef kernel, dilation, padding, stride;
  int64_t count[2];

  Windows(
      c10::IntArrayRef image,
      c10::IntArrayRef kernel_size,
      c10::IntArrayRef dilations,
      c10::IntArrayRef paddings,
      c10::IntArrayRef strides)
      : kernel(kernel_size), dilation(dilations), padding(paddings), stride(strides) {
    for (size_t d = 0; d < 2; ++d) {
      count[d] = (image[d] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1) / stride[d] + 1;
    }
  }

  // The elements that offset (i, j) of all windows falls on.
  Tensor slice(const Tensor& padded, int64_t i, int64_t j) const {
    const auto along = [&](const Tensor& tensor, int64_t dim, size_t d, int64_t k) {
      const int64_t start = k * dilation[d];
      return tensor.slice(dim, start, start + (count[d] - 1) * stride[d] + 1, stride[d]);
    };
    return along(along(padded, -2, 0, i), -1, 1, j);
  }

  Tensor inside(const Tensor& padded, c10::IntArrayRef image) const {
    return padded.narrow(-2, padding[0], image[0]).narrow(-1, padding[1], image[1]);
  }

  Tensor zeros(const Tensor& like, int64_t batch, int64_t channels, c10::IntArrayRef image) const {
    return at::zeros(
        {batch, channels, image[0] + 2 * padding[0], image[1] + 2 * padding[1]}, like.options());
  }
};

void checkPairs(std::initializer_list<std::pair<const char*, c10::IntArrayRef>> pairs) {
  for (const auto& [name, pair] : pairs) {
    TORCH_CHECK(
        pair.size() == 2, "It is expected ", name, " equals to 2, but got size ", pair.size());
  }
}

Tensor im2col(
    const Tensor& given,
    c10::IntArrayRef kernel,
    c10::IntArrayRef dilation,
    c10::IntArrayRef padding,
    c10::IntArrayRef stride) {
  checkPairs(
      {{"kernel_size", kernel}, {"dilation", dilation}, {"padding", padding}, {"stride", stride}});
  at::native::im2col_shape_check(
      given,
      Tensor(),
      kernel[0],
      kernel[1],
      dilation[0],
      dilation[1],
      padding[0],
      padding[1],
      stride[0],
      stride[1]);
  const Tensor input = given.dim() == 3 ? given.unsqueeze(0) : given;
  const auto image = input.sizes().slice(2);
  const int64_t batch = input.size(0), channels = input.size(1);
  const Windows windows(image, kernel, dilation, padding, stride);
  const Tensor padded = windows.zeros(input, batch, channels, image);
  windows.inside(padded, image).copy_(input);
  Tensor out = newResult(
      {batch, channels, kernel[0], kernel[1], windows.count[0], windows.count[1]},
      {},
      input.options());
  for (int64_t i = 0; i < kernel[0]; ++i) {
    for (int64_t j = 0; j < kernel[1]; ++j) {
      out.select(3, j).select(2, i).copy_(windows.slice(padded, i, j));
    }
  }
  const Tensor columns =
      out.view({batch, channels * kernel[0] * kernel[1], windows.count[0] * windows.count[1]});
  return given.dim() == 3 ? columns.squeeze(0) : columns;
}

Tensor col2im(
    const Tensor& given,
    c10::IntArrayRef image,
    c10::IntArrayRef kernel,
    c10::IntArrayRef dilation,
    c10::IntArrayRef padding,
    c10::IntArrayRef stride) {
  checkPairs(
      {{"output_size", image},
       {"kernel_size", kernel},
       {"dilation", dilation},
       {"padding", padding},
       {"stride", stride}});
  at::native::col2im_shape_check(
      given,
      Tensor(),
      image[0],
      image[1],
      kernel[0],
      kernel[1],
      dilation[0],
      dilation[1],
      padding[0],
      padding[1],
      stride[0],
      stride[1]);
  const Tensor input = given.dim() == 2 ? given.unsqueeze(0) : given;
  const int64_t batch = input.size(0), channels = input.size(1) / (kernel[0] * kernel[1]);
  const Windows windows(image, kernel, dilation, padding, stride);
  const Tensor columns =
      input.reshape({batch, channels, kernel[0], kernel[1], windows.count[0], windows.count[1]});
  const Tensor padded = windows.zeros(input, batch, channels, image);
  for (int64_t i = 0; i < kernel[0]; ++i) {
    for (int64_t j = 0; j < kernel[1]; ++j) {
      windows.slice(padded, i, j).add_(columns.select(3, j).select(2, i));
    }
  }
  const Tensor out = windows.inside(padded, image).contiguous();
  return given.dim() == 2 ? out.squeeze(0) : out;
}

Tensor& im2colOut(
    const Tensor& input,
    c10::IntArrayRef kernel,
    c10::IntArrayRef dilation,
    c10::IntArrayRef padding,
    c10::IntArrayRef stride,
    Tensor& out) {
  const Tensor result = puone::im2col(input, kernel, dilation, padding, stride);
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

Tensor& col2imOut(
    const Tensor& input,
    c10::IntArrayRef image,
    c10::IntArrayRef kernel,
    c10::IntArrayRef dilation,
    c10::IntArrayRef padding,
    c10::IntArrayRef stride,
    Tensor& out) {
  const Tensor result = puone::col2im(input, image, kernel, dilation, padding, stride);
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

// ---- trace, narrow_copy ----

Tensor& narrowCopyOut(const Tensor& self, int64_t dim, int64_t start, int64_t length, Tensor& out) {
  const Tensor slice = self.narrow(dim, start, length);
  TORCH_CHECK(
      out.scalar_type() == self.scalar_type(),
      "Expected out tensor to have dtype ",
      self.scalar_type(),
      ", but got ",
      out.scalar_type(),
      " instead");
  at::native::resize_output(out, slice.sizes());
  return out.copy_(slice);
}

Tensor trace(const Tensor& self) {
  TORCH_CHECK(self.dim() == 2, "trace: expected a matrix, but got tensor with dim ", self.dim());
  return self.diagonal().sum();
}

} // namespace
} // namespace puone

#include "aten/shape/shape_registrations.inc"
