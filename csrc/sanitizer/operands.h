// SPDX-License-Identifier: BSD-3-Clause
// Which memory a launch reads and writes: the operands of a kernel, as sets of bytes. The functions
// that find them in the argument structs are generated from hal/kernels.yaml.
#pragma once

#include <c10/util/SmallVector.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "kernels/args.h"

namespace puone::sanitizer {

struct Flags {
  bool reads = false;
  bool writes = false;
  // A part of the elements is touched, at least one of each unit, and which ones is not known.
  bool partial = false;
  // Written, and what is there afterwards means nothing.
  bool workspace = false;
  // Other operands choose which elements matter, perhaps none: unwritten ones are not an error.
  bool chosen = false;
};

// Contiguous bytes [begin, end).
struct Range {
  uintptr_t begin;
  uintptr_t end;
};

// Sets of bytes of which each is touched: the first one, and others at multiples of the steps.
// Their bounds do not overlap.
struct Units {
  struct Step {
    int64_t size;
    int64_t stride; // bytes, positive
  };

  Range first{};
  c10::SmallVector<Step, 2> steps; // by ascending stride

  // The bounds of the unit that has the address, which must be in one.
  Range at(uintptr_t address) const noexcept;
  // Whether one of the units that `part` touches, all of it their bytes, lies in `whole`.
  bool isOneIn(Range whole, Range part) const noexcept;
};

// A strided set of elements: the sums of one multiple of each step. Not thread-safe.
class Operand {
 public:
  Operand(const char* name, const void* data, int64_t element, Flags flags)
      : name(name), flags(flags), data_(reinterpret_cast<uintptr_t>(data)), element_(element) {}

  // `bytes` from the pointer to the first element.
  void start(int64_t bytes) {
    data_ += static_cast<uintptr_t>(bytes);
  }
  // One more dimension; the stride is in bytes and may be 0 or negative.
  void step(int64_t size, int64_t stride);
  // The same from unit to unit: something is touched at each index, also of a partial operand.
  void unitStep(int64_t size, int64_t stride);

  // Brings the set into a form that ranges() can walk. Call it once, after the last step().
  void finish();

  bool empty() const noexcept {
    return empty_;
  }
  // How many ranges there are.
  int64_t count() const noexcept {
    return count_;
  }
  // How many ranges a unit has; one that is not partial is a single unit.
  int64_t countOfUnit() const noexcept {
    return count_of_unit_;
  }
  // From the first byte to past the last one, gaps included.
  Range bounds() const noexcept;
  Units units() const;

  // Calls f(Range) for each contiguous run, unit by unit; runs may touch or overlap.
  template <class F>
  void ranges(const F& f) const {
    for (int64_t i = 0; i < count_; ++i) {
      uintptr_t begin = data_;
      int64_t rest = i;
      for (const Units::Step& step : steps_) {
        begin += static_cast<uintptr_t>(rest % step.size * step.stride);
        rest /= step.size;
      }
      f(Range{begin, begin + static_cast<uintptr_t>(run_)});
    }
  }

  const char* name; // of the argument; static
  Flags flags;

 private:
  using Steps = c10::SmallVector<Units::Step, 4>;
  static constexpr int64_t kMaxUnits = 256;

  void add(Steps& steps, int64_t size, int64_t stride);
  void mergeUnits();
  bool hasUnits() const;
  int64_t lengthOfUnit() const noexcept;

  uintptr_t data_;
  int64_t element_;
  int64_t run_ = 0; // bytes of a contiguous run
  int64_t count_ = 0;
  int64_t count_of_unit_ = 0;
  bool empty_ = false;
  Steps steps_;
  Steps unit_steps_; // once finished, the last ones of steps_, too
};

// The operands of one piece of work.
class Operands {
 public:
  Operand& add(const char* name, const void* data, int64_t element, Flags flags) {
    return all.emplace_back(name, data, element, flags);
  }
  // One range of bytes.
  void add(const char* name, const void* data, size_t bytes, Flags flags) {
    add(name, data, int64_t{1}, flags).step(static_cast<int64_t>(bytes), 1);
  }
  void finish() {
    for (Operand& operand : all) operand.finish();
  }

  c10::SmallVector<Operand, 4> all;
};

// Adds the operands of a launch whose argument struct is `args`.
using OperandsOf = void(const void* args, Operands& to);

// Of every kernel of the contract, by its name.
const std::unordered_map<std::string_view, OperandsOf*>& allKernels();

// Bytes of an element of a puone_dtype.
int64_t elementSize(int32_t dtype);

// How much a launch touches of what its geometry chooses.
enum Touched : int64_t {
  kNothing = 0,
  kSome = 1,
  kAll = 2
};

// How many of the `count` indices i have an index j < other_count for which the place
// i * step + offset + j * other_step is in [0, length).
int64_t used(
    int64_t count,
    int64_t step,
    int64_t other_count,
    int64_t other_step,
    int64_t offset,
    int64_t length);

// How many of the places in [0, length) have such indices. May be kSome although it is all of them.
int64_t reached(
    int64_t count,
    int64_t step,
    int64_t other_count,
    int64_t other_step,
    int64_t offset,
    int64_t length);

// Of the product of three dimensions.
inline int64_t along3(int64_t z, int64_t y, int64_t x) {
  return std::min({z, y, x});
}

// The first row of a matrix of which a triangle has elements, and the number of such rows.
int64_t firstRow(bool upper, int64_t diagonal, int64_t rows);
int64_t rowCount(bool upper, int64_t diagonal, int64_t rows, int64_t columns);

inline int64_t product(const int64_t* sizes, int32_t ndim) {
  int64_t result = 1;
  for (int32_t d = 0; d < ndim; ++d) result *= sizes[d];
  return result;
}

} // namespace puone::sanitizer
