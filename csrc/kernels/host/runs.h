// SPDX-License-Identifier: BSD-3-Clause
// Where the taps of a window meet the source: runs of positions along x.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/args/convolution.h"
#include "kernels/isa.h"

namespace puone::kernels::PUONE_ISA {

/// An index along three dimensions, x being the fastest.
struct Index {
  Index(int64_t z, int64_t y, int64_t x) : z(z), y(y), x(x) {}

  Index(int64_t linear, const int64_t (&sizes)[3])
      : z(linear / (sizes[1] * sizes[2])), y(linear / sizes[2] % sizes[1]), x(linear % sizes[2]) {}

  void nextRow(const int64_t (&sizes)[3]) {
    x = 0;
    if (++y < sizes[1]) return;
    y = 0;
    ++z;
  }

  void next(const int64_t (&sizes)[3]) {
    if (++x == sizes[2]) nextRow(sizes);
  }

  int64_t z;
  int64_t y;
  int64_t x;
};

inline int64_t dot(const Index& index, const int64_t (&strides)[3]) {
  return index.z * strides[0] + index.y * strides[1] + index.x * strides[2];
}

/// Positions [first, first + count), whose source elements are `source`, `source` + stride, ... The
/// stride is the window's step along x.
struct Run {
  int64_t first;
  int64_t count;
  int64_t source;
};

/// Calls visit(run) for the runs among the n positions from `position` on; at all others, the tap
/// lies outside of the source. `position` is number 0.
template <class Visit>
void forRuns(
    const puone_window& window, const Index& tap, Index position, int64_t n, const Visit& visit) {
  const auto source = [&](int d, int64_t at, int64_t t) {
    return at * window.position_step[d] + window.offset[d] + t * window.tap_step[d];
  };
  const int64_t stride = window.position_step[2];
  const int64_t size = window.source[2];
  for (int64_t done = 0; done < n; position.nextRow(window.positions)) {
    const int64_t in_row = std::min(n - done, window.positions[2] - position.x);
    const int64_t z = source(0, position.z, tap.z);
    const int64_t y = source(1, position.y, tap.y);
    const int64_t x = source(2, position.x, tap.x);
    if (z >= 0 && z < window.source[0] && y >= 0 && y < window.source[1] && x < size) {
      const int64_t begin = x < 0 ? (stride - 1 - x) / stride : 0;
      const int64_t end = std::min(in_row, (size - 1 - x) / stride + 1);
      if (begin < end) {
        const int64_t row = (z * window.source[1] + y) * size;
        visit(Run{done + begin, end - begin, row + x + begin * stride});
      }
    }
    done += in_row;
  }
}

} // namespace puone::kernels::PUONE_ISA
