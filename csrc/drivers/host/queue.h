// SPDX-License-Identifier: BSD-3-Clause
// What hardware does by itself and this driver by threads: each stream is a queue with a thread
// that takes its work in order, started by its first work. One lock guards all queues and the trace
// of what they did.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "drivers/common/error.h"
#include "hal/hal.h"

namespace puone::host {

struct Queue;

/// One record of an event. It outlives the event: queued waits and the queue hold it, too.
struct Record {
  std::shared_ptr<Queue> queue;
  uint64_t position = 0; // how much the queue has done when this is complete
  bool complete = false;
  std::chrono::steady_clock::time_point time; // of completion
};

/// A piece of work. Its parts are done in this order; each may be missing.
struct Work {
  std::shared_ptr<Record> waits_for{};
  const char* name = nullptr;
  puone_trace_kind kind{}; // of the body, for a trace
  uint64_t bytes = 0;
  std::function<void()> body{}; // skipped behind a failure; it throws Error to fail
  std::shared_ptr<Record> completes{};
  puone_trace_record* traced = nullptr; // where the times of the body go; set by Queues
};

/// The object of a puone_stream. Guarded by the lock of Queues.
struct Queue {
  std::deque<Work> waiting;
  uint64_t submitted = 0; // pieces of work, ever
  uint64_t done = 0;
  std::optional<Error> failure; // not reported yet
  uint64_t failed_at = 0;       // the value of `done` behind the work that failed
  bool ends = false;
  std::condition_variable more;
  std::thread thread;
};

/// All queues. Every function may be called from any thread but those of the queues.
class Queues {
 public:
  Queues() = default;
  /// Finishes all work.
  ~Queues();
  Queues(const Queues&) = delete;
  Queues& operator=(const Queues&) = delete;

  Queue* create();
  /// Finishes the queue's work.
  void destroy(Queue* queue);

  void submit(Queue* queue, Work work);
  /// Submits the completion of a new record, and returns it.
  std::shared_ptr<Record> record(Queue* queue);

  /// Whether all work is done. Throws the queue's failure, which is reported by that.
  bool idle(Queue* queue);
  /// Waits for the work that is there now, and throws the failure of it.
  void finish(Queue* queue);
  /// The same for all queues. Without `report` a failure stays where it is.
  void finishAll(bool report);
  bool complete(const std::shared_ptr<Record>& record);
  void finish(const std::shared_ptr<Record>& record);

  /// Records every body that is submitted from now on.
  void startTrace();
  /// Waits for the bodies recorded, and returns the records of those that ran, in the order of
  /// submission. They live until the next startTrace().
  const std::vector<puone_trace_record>& stopTrace();

  /// What the calling thread runs, if it is a thread of a queue; else NULL.
  static const char* runningWork();
  bool hasThreads() const;

  /// Held across fork(), so that the child finds the queues consistent.
  std::mutex& mutex() const {
    return mutex_;
  }

 private:
  using Lock = std::unique_lock<std::mutex>;

  enum class Tracing {
    kOff,
    kOn,
    kStopping
  };

  void push(const std::shared_ptr<Queue>& queue, Work work);
  void trace(const Queue& queue, Work& work);
  void run(Queue& queue);
  void waitUntil(Lock& lock, const Queue& queue, uint64_t done);
  static void throwFailure(Queue& queue, uint64_t position);

  mutable std::mutex mutex_;
  std::condition_variable progress_; // something was completed
  std::unordered_map<const Queue*, std::shared_ptr<Queue>> queues_;
  Tracing tracing_ = Tracing::kOff;
  std::deque<puone_trace_record> traced_; // queued work points into it
  size_t unfinished_ = 0;                 // of these
  std::vector<puone_trace_record> records_;
};

} // namespace puone::host
