// SPDX-License-Identifier: BSD-3-Clause
// Reports the cause of a segmentation fault in device memory: the host dereferenced a device
// address, or a kernel accessed memory outside of its blocks.
#pragma once

#include "drivers/sim/memory.h"

namespace puone::sim {

/// Installs the SIGSEGV handler (once per process, in front of the current one) and gives it the
/// devices' addresses. The handler writes one line and then passes the signal to the previous
/// handler. Throws Error(INTERNAL) if the process has no pthread key left.
void watchAccesses(const Memory& memory);
/// Removes the addresses. The handler stays and only passes signals on.
void forgetAccesses();

/// Gives the calling thread an alternate signal stack for the lifetime of this object. With it, the
/// line is also written if another handler (Python's faulthandler) was installed later and raises
/// the signal again.
class SignalStack {
 public:
  SignalStack();
  ~SignalStack();
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  void* memory_;
};

/// Sets the name of the calling thread's work, for the handler. Restores the previous name at the
/// end. Throws std::bad_alloc if the thread cannot have one.
class Running {
 public:
  explicit Running(const char* name);
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  const char* outer_;
};

/// The name of the calling thread's work; nullptr if it runs none.
const char* runningWork();

} // namespace puone::sim
