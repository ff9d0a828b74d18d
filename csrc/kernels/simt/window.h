// SPDX-License-Identifier: BSD-3-Clause
// A sliding window on a device: maps a position and a (channel, tap) to an element of the source.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>

#include "kernels/args/convolution.h"
#include "kernels/isa.h"
#include "kernels/simt/strided.h"
#include "kernels/target.h"
#include "kernels/window.h"

namespace puone::kernels::PUONE_ISA {

/// Division of 64-bit numbers below `end`, faster if `end` is at most 2^31.
class WideDivider {
 public:
  WideDivider(int64_t divisor, int64_t end)
      : divisor_(std::max<int64_t>(divisor, 1)), is_fast_(end < kMaxElements) {
    if (is_fast_) fast_ = Divider(static_cast<uint32_t>(divisor_));
  }

  /// n / divisor; `n` becomes the remainder.
  PUONE_DEVICE int64_t divide(int64_t& n) const {
    if (is_fast_) {
      auto rest = static_cast<uint32_t>(n);
      const uint32_t quotient = fast_.divide(rest);
      n = rest;
      return quotient;
    }
    const int64_t quotient = n / divisor_;
    n -= quotient * divisor_;
    return quotient;
  }

 private:
  int64_t divisor_;
  Divider fast_;
  bool is_fast_;
};

/// Indices along three dimensions.
struct Point {
  int64_t outer; // the quotient: image or channel
  int32_t z;
  int32_t y;
  int32_t x;
};

/// Finds the indices of numbers below `end`, x being the fastest.
class Points {
 public:
  Points(const int64_t (&sizes)[3], int64_t end)
      : volume_(volume(sizes), end), plane_(sizes[1] * sizes[2], end), row_(sizes[2], end) {}

  PUONE_DEVICE Point at(int64_t number) const {
    Point point;
    point.outer = volume_.divide(number);
    point.z = static_cast<int32_t>(plane_.divide(number));
    point.y = static_cast<int32_t>(row_.divide(number));
    point.x = static_cast<int32_t>(number);
    return point;
  }

 private:
  WideDivider volume_, plane_, row_;
};

class Window {
 public:
  Window(const puone_window& window, int64_t batch, int64_t channels)
      : positions_(window.positions, batch * volume(window.positions)),
        taps_(window.taps, channels * volume(window.taps)),
        volume_(volume(window.source)),
        plane_(window.source[1] * window.source[2]) {
    for (int d = 0; d < 3; ++d) {
      source_[d] = narrow(window.source[d]);
      position_step_[d] = narrow(window.position_step[d]);
      offset_[d] = narrow(window.offset[d]);
      tap_step_[d] = narrow(window.tap_step[d]);
      narrow(window.positions[d]);
    }
  }

  /// The image of a position (outer), and the source coordinates of its first tap.
  PUONE_DEVICE Point position(int64_t number) const {
    Point point = positions_.at(number);
    point.z = point.z * position_step_[0] + offset_[0];
    point.y = point.y * position_step_[1] + offset_[1];
    point.x = point.x * position_step_[2] + offset_[2];
    return point;
  }

  /// The source element of (channel, tap) at a position, relative to the image's first; -1 if it
  /// lies outside of the source.
  PUONE_DEVICE int64_t sourceIndex(const Point& position, int64_t channel_tap) const {
    const Point tap = taps_.at(channel_tap);
    return sourceIndex(position, tap);
  }
  PUONE_DEVICE int64_t sourceIndex(const Point& position, const Point& tap) const {
    const int32_t z = position.z + tap.z * tap_step_[0];
    const int32_t y = position.y + tap.y * tap_step_[1];
    const int32_t x = position.x + tap.x * tap_step_[2];
    const bool inside = static_cast<uint32_t>(z) < static_cast<uint32_t>(source_[0]) &&
                        static_cast<uint32_t>(y) < static_cast<uint32_t>(source_[1]) &&
                        static_cast<uint32_t>(x) < static_cast<uint32_t>(source_[2]);
    if (!inside) return -1;
    return tap.outer * volume_ + z * plane_ + static_cast<int64_t>(y) * source_[2] + x;
  }

  /// Elements of a channel.
  PUONE_DEVICE int64_t channel() const {
    return volume_;
  }

 private:
  static int32_t narrow(int64_t length) {
    if (std::abs(length) > std::numeric_limits<int32_t>::max() / 2) {
      throw std::invalid_argument("a window slides over fewer elements per dimension");
    }
    return static_cast<int32_t>(length);
  }

  Points positions_;
  Points taps_;
  int64_t volume_;
  int64_t plane_;
  int32_t source_[3];
  int32_t position_step_[3];
  int32_t offset_[3];
  int32_t tap_step_[3];
};

} // namespace puone::kernels::PUONE_ISA
