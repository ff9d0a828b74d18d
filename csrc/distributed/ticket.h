// SPDX-License-Identifier: BSD-3-Clause
// What a stream waits for while other processes are involved: a host function in the stream takes
// the ticket, and the thread that finishes the work on the host gives it. Thread-safe.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>

#include "runtime/stream.h"

namespace puone::distributed {

class Ticket {
 public:
  // A second time has no effect.
  void give() noexcept;

  // Blocks until it is given.
  void take();

 private:
  std::mutex mutex_;
  std::condition_variable given_condition_;
  bool given_ = false;
};

// Later work of the stream waits until the ticket is given. The thread that gives it must not wait
// for a host function of any stream: drivers may run them one after the other.
void queueTake(const std::shared_ptr<Ticket>& ticket, const Stream& stream);

} // namespace puone::distributed
