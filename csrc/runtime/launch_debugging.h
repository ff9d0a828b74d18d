// SPDX-License-Identifier: BSD-3-Clause
// Finding the call whose work failed, when its error is reported by a later one:
//
//   PUONE_LAUNCH_BLOCKING=1  each copy, fill, kernel, host function and launch of a graph is
//                            waited for by the call that queues it, so that its error arises there
//   PUONE_STACKS=1           late errors end with the Python stack of the call that queued the
//                            work; needs the HAL's extension "origin"
//
// Both are read when the driver is loaded. Without them the driver's table stays as it is, and
// nothing here runs.
#pragma once

#include <c10/core/Allocator.h>

#include <memory>
#include <string>

#include "hal/hal.h"

namespace puone {

// The stack of a call that queued work; NULL if there is none.
using LaunchStack = std::shared_ptr<c10::GatheredContext>;

// Who gathers the stack of the calling thread, and makes text of one. Before that, and in a process
// without Python, there are no stacks.
void setLaunchStacks(LaunchStack (*gather)(), std::string (*format)(const LaunchStack&)) noexcept;

// Replaces entries of the table of a driver that was just loaded. Called once.
void debugLaunches(puone_hal_api& table);

// What to add to the message of an asynchronous error that an entry has just reported to the
// calling thread: the stack of the call that queued the work; else how to get it. May take the GIL.
std::string launchStack();

// While one exists on the calling thread, launchStack() takes no GIL and has no stack: for code
// that reads errors with a lock that a thread with the GIL may want.
class WithoutLaunchStacks {
 public:
  // Scopes may nest.
  WithoutLaunchStacks() noexcept;
  ~WithoutLaunchStacks();
  WithoutLaunchStacks(const WithoutLaunchStacks&) = delete;
  WithoutLaunchStacks& operator=(const WithoutLaunchStacks&) = delete;
};

} // namespace puone
