// SPDX-License-Identifier: BSD-3-Clause
// Upsampling (nearest, linear and cubic) and padding (reflecting and replicating), in one to three
// dimensions: one kernel that reads its source at other positions.
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <tuple>

#include "aten/core/launch.h"
#include "aten/core/output.h"
#include "aten/core/structured.h"
#include "aten/pool/planes.h"
#include "aten/pool/resample_ops.h"
#include "kernels/args/resample.h"
#include "runtime/stream.h"

namespace puone {
namespace {

using at::Tensor;
using c10::IntArrayRef;
using Scale = std::optional<double>;

bool isFloating(const Tensor& tensor) {
  const c10::ScalarType type = tensor.scalar_type();
  return type == c10::kFloat || type == c10::kDouble || type == c10::kHalf ||
         type == c10::kBFloat16;
}

bool canPad(const Tensor& tensor) {
  return isFloating(tensor) || tensor.scalar_type() == c10::kComplexFloat ||
         tensor.scalar_type() == c10::kComplexDouble;
}

// Of the last `dimensions` dimensions of `source` and `result`.
puone_resample_args resampleArgs(
    const Tensor& source, const Tensor& result, size_t dimensions, puone_resample_mode mode) {
  puone_resample_args args{};
  args.dtype = *kernelDtype(source.scalar_type());
  args.mode = mode;
  args.planes = planesOf(source, result, dimensions);
  const auto outer = static_cast<size_t>(source.dim()) - dimensions;
  for (puone_resample_axis& axis : args.axes) axis = {1, 1, 0, 1.0};
  for (size_t d = 0; d < dimensions; ++d) {
    puone_resample_axis& axis = args.axes[3 - dimensions + d];
    axis.source = source.sizes()[outer + d];
    axis.result = result.sizes()[outer + d];
  }
  return args;
}

// Runs the kernel from one contiguous tensor to another; `to` may be neither.
void launch(
    const kernel::Kernel<puone_resample_args>& kernel,
    puone_resample_args& args,
    const Tensor& from,
    const Tensor& to) {
  if (to.numel() == 0) return;
  const bool backward = &kernel == &kernel::resample_backward;
  const Tensor input = from.contiguous();
  const ContiguousOutput output(to);
  args.source = backward ? output.data() : inputData(input);
  args.result = backward ? inputData(input) : output.data();
  launchKernel(kernel, args, getCurrentStream(to.device().index()));
  output.copyBack();
}

// Source elements per result element. A scale that the caller gave counts more than the sizes,
// except where PyTorch's nearest_idx() (aten/src/ATen/native/UpSample.h) goes by the sizes alone.
double sourceScale(const puone_resample_axis& axis, puone_resample_mode mode, const Scale& scale) {
  if (mode == PUONE_RESAMPLE_LINEAR_CORNERS || mode == PUONE_RESAMPLE_CUBIC_CORNERS) {
    return axis.result > 1
               ? static_cast<double>(axis.source - 1) / static_cast<double>(axis.result - 1)
               : 0.0;
  }
  const bool by_sizes = mode == PUONE_RESAMPLE_NEAREST &&
                        (axis.result == axis.source || axis.result == 2 * axis.source);
  if (scale && *scale > 0 && !by_sizes) return 1.0 / *scale;
  return static_cast<double>(axis.source) / static_cast<double>(axis.result);
}

// The arguments of an upsampling operator after the sizes: align_corners if there is that choice, a
// scale per dimension, and the output.
template <size_t kDimensions, class... A>
puone_resample_args upsampleArgs(
    const Tensor& source, const Tensor& result, puone_resample_mode mode, const A&... rest) {
  const auto all = std::tie(rest...);
  constexpr size_t kFirstScale = sizeof...(A) - 1 - kDimensions;
  if constexpr (kFirstScale == 1) {
    if (std::get<0>(all)) {
      mode = mode == PUONE_RESAMPLE_LINEAR ? PUONE_RESAMPLE_LINEAR_CORNERS
                                           : PUONE_RESAMPLE_CUBIC_CORNERS;
    }
  }
  puone_resample_args args = resampleArgs(source, result, kDimensions, mode);
  [&]<size_t... kAxis>(std::index_sequence<kAxis...>) {
    ((args.axes[3 - kDimensions + kAxis].scale = sourceScale(
          args.axes[3 - kDimensions + kAxis], mode, std::get<kFirstScale + kAxis>(all))),
     ...);
  }(std::make_index_sequence<kDimensions>());
  return args;
}

bool canUpsample(const Tensor& tensor, puone_resample_mode mode) {
  return isFloating(tensor) ||
         (tensor.scalar_type() == c10::kByte &&
          (mode == PUONE_RESAMPLE_NEAREST || mode == PUONE_RESAMPLE_NEAREST_EXACT));
}

template <class Meta, puone_resample_mode kMode, size_t kDimensions>
struct Upsample : Meta {
  template <class... A>
  static bool supports(const Tensor& self, const A&...) {
    return canUpsample(self, kMode);
  }

  template <class... A>
  void impl(const Tensor& self, IntArrayRef /*output_size*/, const A&... rest) {
    const Tensor& out = std::get<sizeof...(A) - 1>(std::tie(rest...));
    auto args = upsampleArgs<kDimensions>(self, out, kMode, rest...);
    launch(kernel::resample, args, self, out);
  }
};

template <class Meta, puone_resample_mode kMode, size_t kDimensions>
struct UpsampleBackward : Meta {
  template <class... A>
  static bool supports(const Tensor& grad_output, const A&...) {
    return canUpsample(grad_output, kMode);
  }

  template <class... A>
  void impl(
      const Tensor& grad_output,
      IntArrayRef /*output_size*/,
      IntArrayRef /*input_size*/,
      const A&... rest) {
    const Tensor& grad_input = std::get<sizeof...(A) - 1>(std::tie(rest...));
    auto args = upsampleArgs<kDimensions>(grad_input, grad_output, kMode, rest...);
    launch(kernel::resample_backward, args, grad_output, grad_input);
  }
};

// Paddings come in pairs, those of the last dimension first.
puone_resample_args padArgs(
    const Tensor& source, const Tensor& result, puone_resample_mode mode, IntArrayRef padding) {
  const size_t dimensions = padding.size() / 2;
  puone_resample_args args = resampleArgs(source, result, dimensions, mode);
  for (size_t d = 0; d < dimensions; ++d) args.axes[2 - d].before = padding[2 * d];
  return args;
}

void pad(const Tensor& self, puone_resample_mode mode, IntArrayRef padding, const Tensor& out) {
  auto args = padArgs(self, out, mode, padding);
  launch(kernel::resample, args, self, out);
}

void padBackward(
    const Tensor& grad_output,
    puone_resample_mode mode,
    IntArrayRef padding,
    const Tensor& grad_input) {
  auto args = padArgs(grad_input, grad_output, mode, padding);
  launch(kernel::resample_backward, args, grad_output, grad_input);
}

template <class Meta, puone_resample_mode kMode>
struct Pad : Meta {
  template <class... A>
  static bool supports(const Tensor& self, const A&...) {
    return canPad(self);
  }

  void impl(const Tensor& self, IntArrayRef padding, const Tensor& out) {
    pad(self, kMode, padding, out);
  }
};

template <class Meta, puone_resample_mode kMode>
struct PadBackward : Meta {
  template <class... A>
  static bool supports(const Tensor& grad_output, const A&...) {
    return canPad(grad_output);
  }

  void impl(
      const Tensor& grad_output,
      const Tensor& /*self*/,
      IntArrayRef padding,
      const Tensor& grad_input) {
    padBackward(grad_output, kMode, padding, grad_input);
  }
};

// The paddings without a meta function of their own, and what it would check.

std::vector<int64_t> paddedSizes(const Tensor& self, IntArrayRef padding) {
  auto sizes = self.sizes().vec();
  for (size_t d = 0; 2 * d < padding.size(); ++d) {
    sizes[sizes.size() - 1 - d] += padding[2 * d] + padding[2 * d + 1];
  }
  return sizes;
}

void checkPad2d(const Tensor& self, IntArrayRef padding) {
  TORCH_CHECK(padding.size() == 4, "padding size is expected to be 4");
  const bool has_elements = self.dim() >= 3 && self.size(-1) != 0 && self.size(-2) != 0 &&
                            (self.dim() == 3 ? self.size(0) != 0 : self.size(1) != 0);
  TORCH_CHECK(
      (self.dim() == 3 || self.dim() == 4) && has_elements,
      "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero ",
      "dimensions for input, but got: ",
      self.sizes());
  for (int64_t d = 0; d < 2; ++d) {
    const int64_t before = padding[static_cast<size_t>(2 * d)];
    const int64_t after = padding[static_cast<size_t>(2 * d + 1)];
    TORCH_CHECK(
        before < self.size(-1 - d) && after < self.size(-1 - d),
        "Argument #",
        2 * d + 4,
        ": Padding size should be less than the corresponding input dimension, but got: padding (",
        before,
        ", ",
        after,
        ") at dimension ",
        self.dim() - 1 - d,
        " of input ",
        self.sizes());
    TORCH_CHECK(
        self.size(-1 - d) + before + after >= 1,
        "input (H: ",
        self.size(-2),
        ", W: ",
        self.size(-1),
        ") is too small. Calculated output is empty");
  }
}

Tensor& reflectionPad2dOut(const Tensor& self, c10::IntArrayRef padding, Tensor& out) {
  if (!canPad(self)) return fallBack<at::_ops::reflection_pad2d_out>(self, padding, out);
  checkPad2d(self, padding);
  resizeOut(out, paddedSizes(self, padding), {}, self.options());
  pad(self, PUONE_RESAMPLE_REFLECT, padding, out);
  return out;
}

Tensor reflectionPad2d(const Tensor& self, c10::IntArrayRef padding) {
  if (!canPad(self)) return fallBack<at::_ops::reflection_pad2d>(self, padding);
  checkPad2d(self, padding);
  const auto options = self.options().memory_format(self.suggest_memory_format());
  const Tensor out = at::empty(paddedSizes(self, padding), options);
  pad(self, PUONE_RESAMPLE_REFLECT, padding, out);
  return out;
}

void padBackwardInto(
    const Tensor& grad_output,
    const Tensor& self,
    puone_resample_mode mode,
    IntArrayRef padding,
    const Tensor& grad_input) {
  TORCH_CHECK(
      grad_output.sizes() == paddedSizes(self, padding),
      "grad_output of sizes ",
      grad_output.sizes(),
      " is not that of an input of sizes ",
      self.sizes());
  padBackward(grad_output, mode, padding, grad_input);
}

template <class Overload, puone_resample_mode kMode>
Tensor& padBackwardOut(
    const Tensor& grad_output, const Tensor& self, c10::IntArrayRef padding, Tensor& grad_input) {
  if (!canPad(grad_output)) {
    return fallBack<Overload>(grad_output, self, padding, grad_input);
  }
  resizeOut(grad_input, self.sizes(), {}, self.options());
  padBackwardInto(grad_output, self, kMode, padding, grad_input);
  return grad_input;
}

template <class Overload, puone_resample_mode kMode>
Tensor padBackwardNew(const Tensor& grad_output, const Tensor& self, c10::IntArrayRef padding) {
  if (!canPad(grad_output)) return fallBack<Overload>(grad_output, self, padding);
  const Tensor grad_input = at::empty(self.sizes(), self.options());
  padBackwardInto(grad_output, self, kMode, padding, grad_input);
  return grad_input;
}

constexpr auto kNearest = PUONE_RESAMPLE_NEAREST;
constexpr auto kExact = PUONE_RESAMPLE_NEAREST_EXACT;
constexpr auto kLinear = PUONE_RESAMPLE_LINEAR;
constexpr auto kCubic = PUONE_RESAMPLE_CUBIC;
constexpr auto kReflect = PUONE_RESAMPLE_REFLECT;
constexpr auto kReplicate = PUONE_RESAMPLE_REPLICATE;

} // namespace
} // namespace puone

#include "aten/pool/resample_registrations.inc"
