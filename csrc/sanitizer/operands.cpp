// SPDX-License-Identifier: BSD-3-Clause
#include "sanitizer/operands.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>

#include "hal/element_bytes.h"

namespace puone::sanitizer {

Range Units::at(uintptr_t address) const noexcept {
  uintptr_t begin = first.begin;
  for (size_t i = steps.size(); i-- > 0;) {
    const auto stride = static_cast<uintptr_t>(steps[i].stride);
    const auto last = static_cast<uintptr_t>(steps[i].size - 1);
    begin += std::min((address - begin) / stride, last) * stride;
  }
  return {begin, begin + (first.end - first.begin)};
}

bool Units::isOneIn(Range whole, Range part) const noexcept {
  const auto contains = [&](Range unit) {
    return whole.begin <= unit.begin && unit.end <= whole.end;
  };
  const Range unit = at(part.begin); // may begin before the part; then the next one does not
  return contains(unit) || (unit.end < part.end && contains(at(unit.end)));
}

void Operand::add(Steps& steps, int64_t size, int64_t stride) {
  if (size <= 0) empty_ = true;
  if (size <= 1 || stride == 0) return;
  if (stride < 0) {
    data_ += static_cast<uintptr_t>(stride * (size - 1));
    stride = -stride;
  }
  steps.push_back({size, stride});
}

void Operand::step(int64_t size, int64_t stride) {
  add(steps_, size, stride);
}

void Operand::unitStep(int64_t size, int64_t stride) {
  add(unit_steps_, size, stride);
}

// From the first byte of a unit to past its last one. `steps_` are those inside of it.
int64_t Operand::lengthOfUnit() const noexcept {
  int64_t length = run_;
  for (const Units::Step& step : steps_) length += step.stride * (step.size - 1);
  return length;
}

// Whether the units lie behind each other, so that an address says which one it is in.
bool Operand::hasUnits() const {
  int64_t length = lengthOfUnit();
  for (const Units::Step& step : unit_steps_) {
    if (step.stride < length) return false;
    length += step.stride * (step.size - 1);
  }
  return true;
}

// Neighbouring units become one, in equal numbers, until there are few enough.
void Operand::mergeUnits() {
  int64_t count = 1;
  for (const Units::Step& step : unit_steps_) count *= step.size;
  for (Units::Step& step : unit_steps_) {
    int64_t many = 1;
    while (many < step.size && (step.size % many != 0 || count / many > kMaxUnits)) ++many;
    if (many == 1) return;
    count /= many;
    steps_.push_back({many, step.stride});
    step = {step.size / many, step.stride * many};
  }
}

void Operand::finish() {
  const auto by_stride = [](const Units::Step& a, const Units::Step& b) {
    return a.stride < b.stride;
  };
  const auto join = [&] {
    std::sort(steps_.begin(), steps_.end(), by_stride);
    Steps outer;
    for (const Units::Step& step : steps_) {
      if (outer.empty() && step.stride <= run_) {
        run_ += step.stride * (step.size - 1);
      } else {
        outer.push_back(step);
      }
    }
    steps_ = std::move(outer);
  };
  run_ = element_;
  if (flags.partial) {
    std::sort(unit_steps_.begin(), unit_steps_.end(), by_stride);
    mergeUnits();
    join();
  }
  if (!flags.partial || !hasUnits()) {
    steps_.append(unit_steps_.begin(), unit_steps_.end());
    unit_steps_.clear();
    join();
  }
  count_of_unit_ = empty_ ? 0 : 1;
  for (const Units::Step& step : steps_) count_of_unit_ *= step.size;
  count_ = count_of_unit_;
  for (const Units::Step& step : unit_steps_) count_ *= step.size;
  steps_.append(unit_steps_.begin(), unit_steps_.end());
}

Range Operand::bounds() const noexcept {
  return {data_, data_ + static_cast<uintptr_t>(lengthOfUnit())};
}

Units Operand::units() const {
  int64_t length = lengthOfUnit();
  for (const Units::Step& step : unit_steps_) length -= step.stride * (step.size - 1);
  Units units{{data_, data_ + static_cast<uintptr_t>(length)}, {}};
  units.steps.append(unit_steps_.begin(), unit_steps_.end());
  return units;
}

int64_t used(
    int64_t count,
    int64_t step,
    int64_t other_count,
    int64_t other_step,
    int64_t offset,
    int64_t length) {
  if (other_step < 0) {
    offset += other_step * (other_count - 1);
    other_step = -other_step;
  }
  int64_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t first = i * step + offset;
    // The first j whose place is not below 0.
    const int64_t j = first >= 0 || other_step == 0 ? 0 : (-first + other_step - 1) / other_step;
    const int64_t place = first + j * other_step;
    if (j < other_count && place >= 0 && place < length) ++found;
  }
  return found == 0 ? kNothing : found < count ? kSome : kAll;
}

int64_t reached(
    int64_t count,
    int64_t step,
    int64_t other_count,
    int64_t other_step,
    int64_t offset,
    int64_t length) {
  if (count > other_count) return reached(other_count, other_step, count, step, offset, length);
  if (used(count, step, other_count, other_step, offset, length) == kNothing) return kNothing;
  int64_t first = offset;
  int64_t last = offset;
  int64_t run = 1; // how many places follow each other
  const auto by_step = step * step <= other_step * other_step;
  const std::array<Units::Step, 2> both{
      Units::Step{by_step ? count : other_count, by_step ? step : other_step},
      Units::Step{by_step ? other_count : count, by_step ? other_step : step}};
  for (const Units::Step& each : both) {
    const int64_t reach = each.stride * (each.size - 1);
    (reach < 0 ? first : last) += reach;
    if (each.size > 1 && std::abs(each.stride) > run) return kSome;
    run += std::abs(reach);
  }
  return first <= 0 && last >= length - 1 ? kAll : kSome;
}

int64_t firstRow(bool upper, int64_t diagonal, int64_t rows) {
  return upper ? 0 : std::clamp<int64_t>(-diagonal, 0, rows);
}

int64_t rowCount(bool upper, int64_t diagonal, int64_t rows, int64_t columns) {
  if (upper) return std::clamp<int64_t>(columns - diagonal, 0, rows);
  return rows - firstRow(upper, diagonal, rows);
}

int64_t elementSize(int32_t dtype) {
  static_assert(std::size(kElementBytes) == PUONE_COMPLEX128 + 1);
  return dtype < 0 || dtype > PUONE_COMPLEX128 ? 1 : kElementBytes[dtype];
}

} // namespace puone::sanitizer
