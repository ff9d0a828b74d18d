// SPDX-License-Identifier: BSD-3-Clause
#include "sanitizer/operands.h"

#include <algorithm>

namespace puone::sanitizer {

void Operand::step(int64_t size, int64_t stride) {
  if (size <= 0) empty_ = true;
  if (size <= 1 || stride == 0) return;
  if (stride < 0) {
    data_ += static_cast<uintptr_t>(stride * (size - 1));
    stride = -stride;
  }
  steps_.push_back({size, stride});
}

void Operand::finish() {
  std::sort(steps_.begin(), steps_.end(), [](const Step& a, const Step& b) {
    return a.stride < b.stride;
  });
  run_ = element_;
  count_ = empty_ ? 0 : 1;
  c10::SmallVector<Step, 4> outer;
  for (const Step& step : steps_) {
    if (outer.empty() && step.stride <= run_) {
      run_ += step.stride * (step.size - 1);
    } else {
      outer.push_back(step);
      count_ *= step.size;
    }
  }
  steps_ = std::move(outer);
}

Range Operand::bounds() const noexcept {
  int64_t length = run_;
  for (const Step& step : steps_) length += step.stride * (step.size - 1);
  return {data_, data_ + static_cast<uintptr_t>(length)};
}

int64_t elementSize(int32_t dtype) {
  constexpr int64_t sizes[] = {1, 1, 1, 2, 4, 8, 2, 4, 8, 2, 2, 4, 8, 4, 8, 16};
  static_assert(PUONE_COMPLEX128 == 15);
  return dtype < 0 || dtype > PUONE_COMPLEX128 ? 1 : sizes[dtype];
}

} // namespace puone::sanitizer
