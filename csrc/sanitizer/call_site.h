// SPDX-License-Identifier: BSD-3-Clause
// Where the calling thread is in the program: an observer of PyTorch's operators
// (ATen/record_function.h). It also sees what operators of the CPU do to pinned memory.
#pragma once

#include "sanitizer/sanitizer.h"
#include "sanitizer/work.h"

namespace puone::sanitizer {

// What is said of the host's own accesses instead of a kernel.
inline constexpr const char* kHostsWork = "the CPU";

// Starts and ends the observation of all threads.
void observeOperators();
void ignoreOperators();

// The operator that the thread is in. Outside of one, the Python stack of now: then it takes the
// GIL, as gatherPythonStack() does.
SitePtr callSite();

// The same, but NULL outside of an operator: for callers that hold a lock.
SitePtr operatorSite();

// While it lives, what the thread does to pinned memory is done at that moment.
class InHostFunction {
 public:
  explicit InHostFunction(const Moment& moment);
  ~InHostFunction();
  InHostFunction(const InHostFunction&) = delete;
  InHostFunction& operator=(const InHostFunction&) = delete;
};

// Reports what was found, as enable() says. Throws c10::Error if that is to raise.
void deliver();

// The same for what the host itself does, where nothing can be thrown: then the next call that
// queues work throws.
void deliverFromHost();

} // namespace puone::sanitizer
