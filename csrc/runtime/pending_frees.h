// SPDX-License-Identifier: BSD-3-Clause
// Freed blocks that other streams may still use: one event per (block, stream), kept in the order
// of each stream, so that looking ends at the first event that has not completed. Plain data
// without a lock: the arena's mutex guards it. What waits for the device is static and called
// without the lock.
#pragma once

#include <deque>
#include <exception>
#include <string>
#include <vector>

#include "runtime/block.h"
#include "runtime/event.h"
#include "runtime/stream.h"

namespace puone {

// Other work of a stream on a block, and the event behind it.
struct PendingUse {
  Event event;
  Block* block;
  Stream user;
  bool reported = false; // its query has failed once, and the error was thrown
};

// What asking the driver gave.
struct UseStatus {
  puone_status status;
  std::exception_ptr error; // set unless status is OK or NOT_READY
};

class PendingFrees {
 public:
  bool empty() const noexcept {
    return count_ == 0;
  }

  // An event to record; reused ones first.
  Event newEvent();

  // The block's use by `use.user` is done when the event completes.
  void add(PendingUse use);

  // The block's use by `user` has no event that could be queried. The block is held until
  // release() says that the stream is idle.
  void hold(Block* block, const Stream& user);

  // Appends the blocks that are reusable by now, without waiting. Returns an error to throw.
  [[nodiscard]] std::exception_ptr poll(std::vector<Block*>& reusable);

  // What is pending or held leaves the queues, to be waited for without the lock ...
  std::vector<PendingUse> takeUses();
  std::vector<Block*> takeHeld();
  static UseStatus wait(const PendingUse& use);
  static UseStatus wait(const Stream& stream);
  // ... and comes back with the result. Both append the blocks that are reusable then.
  [[nodiscard]] std::exception_ptr settle(
      PendingUse use, const UseStatus& status, std::vector<Block*>& reusable);
  void release(Block* held, const std::vector<Stream>& idle, std::vector<Block*>& reusable);

 private:
  struct Queue {
    Stream user;
    std::deque<PendingUse> uses;
  };
  Queue& queueOf(const Stream& user);

  std::deque<Queue> queues_;
  size_t count_ = 0; // uses in the queues
  std::vector<Block*> held_;
  std::vector<Event> idle_events_;
};

// True for an error of queued work that the driver reports once: it must reach the caller. Other
// errors say that the question cannot be answered, now or ever.
bool isAsynchronousError(puone_status status) noexcept;

// Warns, once per process, that memory is held.
void warnHeld(const std::exception_ptr& error);

} // namespace puone
