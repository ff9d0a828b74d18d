// SPDX-License-Identifier: BSD-3-Clause
// The dimensions of an input and two outputs, for loops that distinguish dimensions: reductions and
// scans.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>

#include "kernels/args.h"
#include "kernels/isa.h"
#include "kernels/launch.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {

/// Some of a launch's dimensions, innermost first; adjacent contiguous ones are merged.
struct Dimensions {
  static constexpr int kStrides = 3; // the input and two outputs

  int32_t ndim = 0;
  std::array<int64_t, PUONE_MAX_DIMS> sizes;
  std::array<std::array<int64_t, PUONE_MAX_DIMS>, kStrides> strides;

  PUONE_FN void add(int64_t size, const std::array<int64_t, kStrides>& stride) {
    if (size == 1) return;
    bool continues = ndim > 0;
    for (int o = 0; o < kStrides && continues; ++o) {
      continues = stride[o] == strides[o][ndim - 1] * sizes[ndim - 1];
    }
    if (continues) {
      sizes[ndim - 1] *= size;
      return;
    }
    sizes[ndim] = size;
    for (int o = 0; o < kStrides; ++o) strides[o][ndim] = stride[o];
    ++ndim;
  }

  PUONE_FN int64_t elements() const {
    int64_t n = 1;
    for (int32_t d = 0; d < ndim; ++d) n *= sizes[d];
    return n;
  }

  PUONE_FN int64_t length() const {
    return ndim > 0 ? sizes[0] : 1;
  }
  PUONE_FN int64_t stride(int o) const {
    return ndim > 0 ? strides[o][0] : 0;
  }
};

/// A position in the dimensions that can advance through all their elements.
class Cursor {
 public:
  PUONE_FN Cursor(const Dimensions& dims, int64_t linear) : dims_(dims) {
    for (int32_t d = 0; d < dims.ndim && linear > 0; ++d) {
      index_[d] = linear % dims.sizes[d];
      linear /= dims.sizes[d];
      for (int o = 0; o < Dimensions::kStrides; ++o) offsets_[o] += index_[d] * dims.strides[o][d];
    }
  }

  PUONE_FN int64_t offset(int o) const {
    return offsets_[o];
  }
  /// Number of elements from here to the end of the innermost dimension.
  PUONE_FN int64_t left() const {
    return dims_.ndim > 0 ? dims_.sizes[0] - index_[0] : 1;
  }
  PUONE_FN void advance(int64_t n) {
    move(0, n);
    for (int32_t d = 0; d < dims_.ndim && index_[d] == dims_.sizes[d]; ++d) {
      move(d, -dims_.sizes[d]);
      move(d + 1, 1);
    }
  }

 private:
  PUONE_FN void move(int32_t d, int64_t n) {
    if (d >= dims_.ndim) return;
    index_[d] += n;
    for (int o = 0; o < Dimensions::kStrides; ++o) offsets_[o] += n * dims_.strides[o][d];
  }

  const Dimensions& dims_;
  std::array<int64_t, PUONE_MAX_DIMS> index_{};
  std::array<int64_t, Dimensions::kStrides> offsets_{};
};

/// The dimensions in order of increasing stride; the rest of the array is -1.
inline std::array<int32_t, PUONE_MAX_DIMS + 1> byStride(int32_t ndim, const int64_t* strides) {
  std::array<int32_t, PUONE_MAX_DIMS + 1> order;
  order.fill(-1);
  for (int32_t d = 0; d < ndim; ++d) {
    int32_t to = d;
    for (; to > 0 && std::abs(strides[order[to - 1]]) > std::abs(strides[d]); --to) {
      order[to] = order[to - 1];
    }
    order[to] = d;
  }
  return order;
}

/// The address of an operand; null if it is missing.
inline unsigned char* resolveOptional(Launch& launch, const puone_operand& operand) {
  return operand.data ? launch.resolve(operand.data) : nullptr;
}

} // namespace puone::kernels::PUONE_ISA
