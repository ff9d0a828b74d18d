// SPDX-License-Identifier: BSD-3-Clause
// Vector clocks. Time passes in lanes: lane 0 is the host, each stream is a lane, and so is each
// stream inside of a graph. Work happens before other work if the other's clock has reached it.
#pragma once

#include <c10/util/SmallVector.h>

#include <algorithm>
#include <cstdint>

namespace puone::sanitizer {

using Lane = uint32_t;
constexpr Lane kHost = 0;

// For each lane, how much of it is known to be over. A lane that is not there is at 0.
class Clock {
 public:
  uint64_t at(Lane lane) const noexcept {
    return lane < times_.size() ? times_[lane] : 0;
  }
  // One more piece of work in the lane. Returns its time.
  uint64_t tick(Lane lane) {
    if (lane >= times_.size()) times_.resize(lane + 1);
    return ++times_[lane];
  }
  // What `other` knows to be over is over here too.
  void join(const Clock& other) {
    if (times_.size() < other.times_.size()) times_.resize(other.times_.size());
    for (size_t lane = 0; lane < other.times_.size(); ++lane) {
      times_[lane] = std::max(times_[lane], other.times_[lane]);
    }
  }

 private:
  c10::SmallVector<uint64_t, 8> times_;
};

} // namespace puone::sanitizer
