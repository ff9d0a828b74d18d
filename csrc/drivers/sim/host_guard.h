// SPDX-License-Identifier: BSD-3-Clause
// Names the culprit when a bad access to device memory faults: the host dereferencing a device
// address, or a kernel running out of its blocks.
#pragma once

#include "drivers/sim/memory.h"

namespace puone::sim {

/// Installs the SIGSEGV handler (once per process, in front of whatever is there) and tells it
/// which addresses are the devices'. The handler writes one line and then gives the signal to the
/// handler that was there before.
void watchAccesses(const Memory& memory);
/// Forgets the addresses. The handler stays, and only passes signals on.
void forgetAccesses();

/// Gives the calling thread an alternate signal stack while it lives. With one, our line is also
/// written when another handler (Python's faulthandler) was installed later and raises the signal
/// again for us.
class SignalStack {
 public:
  SignalStack();
  ~SignalStack();
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  void* memory_;
};

/// Names the work the calling thread runs, for the handler. Restores the outer name at its end.
class Running {
 public:
  explicit Running(const char* name);
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  const char* outer_;
};

/// Name of the work the calling thread runs, nullptr for none.
const char* runningWork();

} // namespace puone::sim
