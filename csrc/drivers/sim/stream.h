// SPDX-License-Identifier: BSD-3-Clause
// The data of the scheduler: streams, the work in their queues, and the records of events. Guarded
// by the scheduler's lock except where a member says otherwise.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "drivers/common/origin.h"
#include "drivers/sim/work_memory.h"
#include "hal/hal.h"

namespace puone::sim {

class Capture;
struct Stream;

/// One event_record(): a position in a stream's order. Outlives the event while waits need it.
struct Record {
  std::shared_ptr<Stream> stream;
  uint64_t sequence = 0; // complete when the stream has completed this many pieces of work; in a
                         // capture: its number
  uint64_t capture = 0;  // Capture::id() if it was made in a capture; then it never completes
  bool done = false;
  bool timed = false;
  uint64_t time_ns = 0;         // steady clock, if complete and timed
  std::vector<Stream*> blocked; // streams whose head waits for this record
};

struct Event {
  int32_t device;
  uint32_t flags;               // puone_event_flags
  std::shared_ptr<Record> last; // the most recent record, or none
};

/// One entry of a stream's queue.
struct Work {
  enum class Kind : uint8_t {
    kDevice,
    kHostFunction,
    kRecord,
    kWait
  };

  Work(Kind k, const char* n, bool u, bool b = false) : kind(k), urgent(u), brief(b), name(n) {}
  /// A kRecord or kWait.
  Work(Kind k, const char* n, std::shared_ptr<Record> r)
      : kind(k), urgent(false), brief(false), name(n), record(std::move(r)) {}
  virtual ~Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  static void* operator new(size_t bytes) {
    return allocateWork(bytes);
  }
  struct Behind {
    size_t bytes;
  };
  /// Allocates additional memory after the object.
  static void* operator new(size_t bytes, Behind behind) {
    return allocateWork(bytes + behind.bytes);
  }
  static void operator delete(void* memory) noexcept {
    freeWork(memory);
  }
  static void operator delete(void* memory, Behind) noexcept { // where the constructor throws
    freeWork(memory);
  }

  /// What traces and captures ask of everything but records and waits.
  struct Description {
    puone_trace_kind kind;
    const char* name; // static
    uint64_t bytes;
  };
  virtual Description description() const {
    return {};
  }
  /// The same work, to be queued once more.
  virtual std::unique_ptr<Work> again() const {
    return nullptr;
  }

  /// What a graph that has the work must keep; its module knows by that.
  virtual std::shared_ptr<const void> needs() const {
    return nullptr;
  }

  /// Runs without any lock, or if it is brief, perhaps with the scheduler's. Returns the minimum
  /// duration of the work in ns. May throw Error.
  virtual uint64_t run() {
    return 0;
  }

  const Kind kind;
  const bool urgent;                    // worth waking a thread for
  const bool brief;                     // takes less time than to release and take a lock
  const char* const name;               // static; "kernel copy", "memcpy_async", ...
  const std::shared_ptr<Record> record; // of kRecord and kWait
  bool injected_error = false;          // fails instead of running
  uint64_t origin = Origin::current;    // the caller's number for it
  puone_trace_record* traced = nullptr; // where its times belong, or none
  Work* next = nullptr;
};

struct Stream {
  enum class State : uint8_t {
    kIdle,    // nothing queued
    kReady,   // in a ready list: the head can run as soon as a thread takes it
    kRunning, // a thread runs the head
    kTimed,   // the head has run and is complete at a deadline
    kBlocked  // the head waits for a record of another stream
  };

  Stream(int32_t d, int32_t p) : device(d), priority(p) {}
  ~Stream() {
    while (head != nullptr) delete std::exchange(head, head->next);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void dropHead() {
    const std::unique_ptr<Work> work(head);
    head = work->next;
    if (head == nullptr) tail = nullptr;
  }

  const int32_t device;
  const int32_t priority; // index of the ready list, 0 is the most urgent
  State state = State::kIdle;
  bool failed = false; // an error waits to be reported; queued work is skipped until then
  Work* head = nullptr;
  Work* tail = nullptr;
  uint64_t submitted = 0; // pieces of work queued so far
  std::atomic<uint64_t> completed{
      0}; // completed pieces; written by the thread that runs them, or under the lock
  std::atomic<int32_t> waiters{
      0}; // threads that wait for `done`; changed under the lock, read without it
  std::condition_variable done;
  std::shared_ptr<Stream> self; // set while there is work, which may outlive the handle
  Capture* capture = nullptr;   // the capture that it is part of, or none
  size_t lane = 0;              // its number in the capture
  uint64_t number = 0;          // from 1, in the order of the first submissions
  bool handed_over = false;     // a worker shall run its head, in an adversarial schedule
  /// Of a stream that is part of a launch of a graph: the stream of the launch, which gets its
  /// errors, and the piece of work there that covers them.
  std::shared_ptr<Stream> launched_on;
  uint64_t covered_by = 0;
  Stream* ready_previous = nullptr;
  Stream* ready_next = nullptr;
  Stream* busy_previous = nullptr; // the device's list of streams that are not idle
  Stream* busy_next = nullptr;
};

/// An intrusive doubly linked list, in insertion order.
template <Stream* Stream::* previous, Stream* Stream::* next>
class StreamList {
 public:
  void pushBack(Stream& stream) {
    stream.*previous = last_;
    stream.*next = nullptr;
    (last_ != nullptr ? last_->*next : first_) = &stream;
    last_ = &stream;
  }
  void erase(Stream& stream) {
    (stream.*previous != nullptr ? stream.*previous->*next : first_) = stream.*next;
    (stream.*next != nullptr ? stream.*next->*previous : last_) = stream.*previous;
  }
  Stream* first() const {
    return first_;
  }
  static Stream* after(const Stream& stream) {
    return stream.*next;
  }

 private:
  Stream* first_ = nullptr;
  Stream* last_ = nullptr;
};

using ReadyList = StreamList<&Stream::ready_previous, &Stream::ready_next>;
using BusyList = StreamList<&Stream::busy_previous, &Stream::busy_next>;

} // namespace puone::sim
