// SPDX-License-Identifier: BSD-3-Clause
// Dimensions as device code sees them: where an element is, from its number.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/args.h"
#include "kernels/dimensions.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {

/// The first kOperands operands of some dimensions, of less than 2^52 elements.
template <int kOperands>
class Axes {
 public:
  explicit Axes(const Dimensions& dims) : ndim_(dims.ndim) {
    for (int32_t d = 0; d < ndim_; ++d) {
      sizes_[d] = dims.sizes[d];
      inverses_[d] = 1 / static_cast<double>(std::max<int64_t>(sizes_[d], 1));
      for (int o = 0; o < kOperands; ++o) strides_[o][d] = dims.strides[o][d];
    }
  }

  /// Adds the offsets of element number `linear`, in bytes.
  PUONE_FN void add(int64_t linear, int64_t (&offsets)[kOperands]) const {
    PUONE_ROLLED
    for (int32_t d = 0; d < ndim_; ++d) {
      int64_t index = linear;
      if (d + 1 < ndim_) index = divide(linear, d);
      for (int o = 0; o < kOperands; ++o) offsets[o] += index * strides_[o][d];
    }
  }

  /// The first operand's offset of element number `linear`.
  PUONE_FN int64_t offset(int64_t linear) const {
    int64_t all = 0;
    PUONE_ROLLED
    for (int32_t d = 0; d < ndim_; ++d) {
      int64_t index = linear;
      if (d + 1 < ndim_) index = divide(linear, d);
      all += index * strides_[0][d];
    }
    return all;
  }

 private:
  /// The remainder of a division by a dimension's size; `linear` becomes the quotient. The product
  /// with the size's inverse is off by one at most.
  PUONE_FN int64_t divide(int64_t& linear, int32_t d) const {
    const int64_t size = sizes_[d];
    int64_t quotient = static_cast<int64_t>(static_cast<double>(linear) * inverses_[d]);
    int64_t rest = linear - quotient * size;
    if (rest < 0) {
      --quotient;
      rest += size;
    } else if (rest >= size) {
      ++quotient;
      rest -= size;
    }
    linear = quotient;
    return rest;
  }

  int32_t ndim_;
  int64_t sizes_[PUONE_MAX_DIMS];
  double inverses_[PUONE_MAX_DIMS];
  int64_t strides_[kOperands][PUONE_MAX_DIMS];
};

} // namespace puone::kernels::PUONE_ISA
