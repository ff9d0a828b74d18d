// SPDX-License-Identifier: BSD-3-Clause
// One piece of work that touches memory, and where in the program it came from.
#pragma once

#include <c10/util/SmallVector.h>

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/python_stack.h"
#include "sanitizer/clock.h"
#include "sanitizer/operands.h"

namespace puone::sanitizer {

// Where a call came from: the outermost operator, and the Python stack of its call. Of work in a
// backward pass, the node and the stack of the forward operator. Immutable and shared.
struct Site {
  std::string name; // "" outside of an operator
  bool backward = false;
  PythonStack stack;
};
using SitePtr = std::shared_ptr<const Site>;

// Immutable once it is in the shadow memory.
struct Work {
  struct Argument {
    const char* name;
    Flags flags;
    Range bounds;
    Units units;
    uint64_t allocation; // number of the memory's allocation, 0 if it is not known
  };

  Lane lane = kHost;
  uint64_t time = 0; // in its lane
  Clock clock;
  SitePtr site;
  std::string what; // the kernel or the entry of the HAL
  c10::SmallVector<Argument, 4> arguments;
};

// What one piece of work does to the memory of one argument.
struct Access {
  std::shared_ptr<const Work> work;
  uint32_t argument = 0;

  const Work::Argument& to() const {
    return work->arguments[argument];
  }
};

// Whether `first` is over before `then` begins, whatever the schedule.
inline bool happensBefore(const Work& first, const Work& then) noexcept {
  return then.clock.at(first.lane) >= first.time;
}

} // namespace puone::sanitizer
