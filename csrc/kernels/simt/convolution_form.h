// SPDX-License-Identifier: BSD-3-Clause
// The arguments of the convolution kernels in the form of vendors' libraries.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "kernels/args/convolution.h"
#include "kernels/isa.h"
#include "kernels/library_convolution.h"
#include "kernels/window.h"

namespace puone::kernels::PUONE_ISA {
namespace detail {

/// Whether the narrow tensor has all positions of a weight that slides over the padded wide one,
/// and no others.
inline bool isRegular(const LibraryConvolution& of) {
  for (int d = 0; d < 3; ++d) {
    if (of.wide_sizes[d] < 1 || of.taps[d] < 1) return false;
    if (of.padding[d] < 0 || of.dilation[d] < 1) return false;
    const int64_t room =
        of.wide_sizes[d] + 2 * of.padding[d] - of.dilation[d] * (of.taps[d] - 1) - 1;
    if (room < 0 || of.narrow_sizes[d] != room / of.stride[d] + 1) return false;
  }
  return true;
}

/// What the arguments of both kernels have, which look from `narrow` to `wide` in the direction of
/// the taps.
template <class Args>
LibraryConvolution slidingOver(const Args& args, ConvolutionResult result) {
  const puone_window& window = args.window;
  LibraryConvolution of{};
  of.result = result;
  of.dtype = static_cast<puone_dtype>(args.dtype);
  of.allow_tf32 = args.allow_tf32 != 0;
  of.batch = args.batch;
  of.groups = args.groups;
  of.narrow_channels = args.rows;
  of.wide_channels = args.channels;
  for (int d = 0; d < 3; ++d) {
    of.narrow_sizes[d] = window.positions[d];
    of.wide_sizes[d] = window.source[d];
    of.taps[d] = window.taps[d];
    of.stride[d] = window.position_step[d];
    of.padding[d] = -window.offset[d];
    of.dilation[d] = window.taps[d] > 1 ? window.tap_step[d] : 1;
  }
  return of;
}

/// Whether the weight is [groups][outer][inner][taps], these being rows and channels or channels
/// and rows.
inline bool isDenseWeight(
    const puone_convolution_args& args,
    int64_t outer,
    int64_t outer_stride,
    int64_t inner,
    int64_t inner_stride) {
  const int64_t taps = volume(args.window.taps);
  return isDense(args.window.taps, args.weight_tap_strides) &&
         (inner == 1 || inner_stride == taps) && (outer == 1 || outer_stride == inner * taps) &&
         (args.groups == 1 || args.weight_group_stride == outer * inner * taps);
}

/// The convolution in the form of a library's arguments, if it has one.
inline std::optional<LibraryConvolution> libraryConvolution(const puone_convolution_args& args) {
  if (!isDense(args.window.positions, args.out_position_strides)) return std::nullopt;
  if (args.out_row_stride != volume(args.window.positions)) return std::nullopt;
  LibraryConvolution of = slidingOver(args, ConvolutionResult::kNarrow);
  of.weight = args.weight;
  of.wide = args.source;
  of.narrow = args.out;
  of.bias = args.bias;
  if (isRegular(of) &&
      isDenseWeight(
          args, args.rows, args.weight_row_stride, args.channels, args.weight_channel_stride)) {
    return of;
  }
  // Taken the other way round, from the wide tensor's positions to the narrow one, taps go
  // backwards in steps of 1; the weight is that of the way from wide to narrow.
  if (args.bias != nullptr) return std::nullopt;
  of.result = ConvolutionResult::kWide;
  std::swap(of.narrow_channels, of.wide_channels);
  std::swap(of.narrow_sizes, of.wide_sizes);
  std::swap(of.narrow, of.wide);
  for (int d = 0; d < 3; ++d) {
    if (of.stride[d] != 1) return std::nullopt;
    of.padding[d] = args.window.offset[d];
    of.dilation[d] = args.window.taps[d] > 1 ? -args.window.tap_step[d] : 1;
  }
  const bool is_dense = isDenseWeight(
      args, args.channels, args.weight_channel_stride, args.rows, args.weight_row_stride);
  return isRegular(of) && is_dense ? std::optional(of) : std::nullopt;
}

inline std::optional<LibraryConvolution> libraryConvolution(
    const puone_convolution_weight_args& args) {
  LibraryConvolution of = slidingOver(args, ConvolutionResult::kWeight);
  of.weight = args.out;
  of.wide = args.source;
  of.narrow = args.left;
  return isRegular(of) ? std::optional(of) : std::nullopt;
}

} // namespace detail
} // namespace puone::kernels::PUONE_ISA
