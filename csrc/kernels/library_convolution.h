// SPDX-License-Identifier: BSD-3-Clause
// A convolution in the form of vendors' libraries: a weight slides over a wide tensor to a narrow
// one (a stride makes it so). All tensors are contiguous: wide [batch][groups * wide_channels]
// [wide_sizes], narrow [batch][groups * narrow_channels][narrow_sizes], and the weight
// [groups * narrow_channels][wide_channels][taps]. Sizes are those of z, y and x.
#pragma once

#include <cstdint>

#include "kernels/args.h"

namespace puone::kernels {

/// Which of the tensors is the result.
enum class ConvolutionResult {
  kNarrow, // the convolution itself
  kWide,   // its gradient by the wide tensor
  kWeight  // its gradient by the weight
};

/// Sums of 16-bit floats are floats, and results are rounded once. `allow_tf32`: factors of float32
/// may be rounded to TF32. `bias` has a number for each channel of a narrow result; NULL: none.
struct LibraryConvolution {
  ConvolutionResult result;
  puone_dtype dtype;
  bool allow_tf32;
  int64_t batch;
  int64_t groups;
  int64_t wide_channels; // per group
  int64_t narrow_channels;
  int64_t wide_sizes[3];
  int64_t narrow_sizes[3];
  int64_t taps[3];
  int64_t stride[3];
  int64_t padding[3];
  int64_t dilation[3];
  void* wide;
  void* narrow;
  void* weight;
  const void* bias;
};

} // namespace puone::kernels
