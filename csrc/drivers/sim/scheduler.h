// SPDX-License-Identifier: BSD-3-Clause
// Runs what is queued on streams, asynchronously and in each stream's order.
//
// A stream whose head can run is *ready* and sits in a ready list by priority. A pool of worker
// threads, started when there is work and grown while it blocks in host functions, takes ready
// streams one piece of work at a time. Records and waits need no thread: whoever completes the work
// before them moves the stream on. A thread that synchronises helps: it runs the work it waits for
// itself when no worker has taken it yet, which spares two context switches, or a share of it when
// one has.
//
// One lock guards all of it. Work runs without the lock, several small pieces of one stream in a
// row, so that the thread that submits and the one that runs rarely meet at the lock.
//
// With PUONE_SIM_SEED the schedule is adversarial: any ready stream may be next whatever its
// priority, workers dawdle, work lasts longer than it runs, and nobody helps.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "drivers/common/error.h"
#include "drivers/sim/options.h"
#include "drivers/sim/parallel.h"
#include "drivers/sim/stream.h"

namespace puone::sim {

class Scheduler {
 public:
  using Lock = std::unique_lock<std::mutex>;

  /// Numerically lower is more urgent; stream priorities run from -(kPriorities - 1) to 0.
  static constexpr int32_t kPriorities = 3;

  Scheduler(const Options& options, Parallel& parallel);
  /// Finishes all queued work, then joins every thread.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// The lock that guards streams, events and records. Methods that take a Lock& may let go of it
  /// meanwhile; the others want it held.
  [[nodiscard]] Lock lock();
  std::mutex& mutex() {
    return mutex_;
  }

  /// Queues work. Throws Error(DEVICE_LOST).
  void submit(const std::shared_ptr<Stream>& stream, std::unique_ptr<Work> work);

  /// Waits until the stream has completed `sequence` pieces of work. `spin`: look for a moment
  /// before sleeping.
  void wait(Lock& lock, const std::shared_ptr<Stream>& stream, uint64_t sequence, bool spin);
  /// Waits until all that is queued on the device now is done.
  void waitDevice(Lock& lock, int32_t device);

  /// Somebody is waiting: a worker has to come at once for what is ready.
  void hurry();

  /// Throws the stream's unreported error, if work up to `sequence` caused one, and forgets it.
  void report(const Stream& stream, uint64_t sequence);
  /// Throws the device's oldest unreported error, if any, and forgets it.
  void reportDevice(int32_t device);

  /// Throws Error(DEVICE_LOST) if it is.
  void checkAlive(int32_t device) const;
  void loseDevice(int32_t device);
  /// Brings lost devices back and forgets the latency set by setLatency().
  void clearFaults();
  void setLatency(uint64_t ns) {
    latency_ns_ = ns;
  }

  /// Process exit without shutdown(): let no thread begin anything more. Does not wait.
  void abandon();

  /// Threads that exist now.
  size_t threads() const {
    return workers_.size() + (timekeeper_.joinable() ? 1 : 0);
  }

 private:
  struct AsyncError {
    std::shared_ptr<Stream> stream;
    uint64_t sequence;
    Error error;
  };
  struct Device {
    std::atomic<bool> lost = false; // read without the lock between two pieces of work
    BusyList busy;
    std::list<AsyncError> errors; // oldest first
  };
  struct Deadline {
    uint64_t time_ns;
    Stream* stream; // alive: it has work
    bool operator<(const Deadline& other) const {
      return time_ns > other.time_ns;
    } // min-heap
  };

  static void acquire(Lock& lock);

  // Moving a stream along its queue.
  void advance(Stream& stream);
  void settle(Stream& stream);
  void complete(Record& record);
  void finishHead(Stream& stream);
  void makeReady(Stream& stream);
  void leaveReady(Stream& stream);

  // Running work.
  void execute(Lock& lock, Stream& stream, uint64_t most, bool comes_back);
  uint64_t batchLength(const Stream& stream, uint64_t most) const;
  std::optional<Error> runBatch(Lock& lock, Stream& stream, uint64_t length, uint64_t& lasts_ns);
  static std::optional<Error> run(Work& work, uint64_t& lasts_ns);
  void fail(Stream& stream, const Work& work, Error error);
  bool help(Lock& lock, Stream& stream, uint64_t sequence);
  template <class Done>
  void look(const Done& done);
  Stream* pickReady();
  bool mayTake(const Stream& stream) const;
  uint64_t random();
  uint64_t dawdle();

  // Threads.
  void callWorker(bool urgent);
  void startWorker();
  void serve(std::list<std::thread>::iterator self);
  bool waitForWork(Lock& lock);
  template <class Called>
  bool nap(Lock& lock, const Called& called);
  void finishAt(uint64_t time_ns, Stream& stream);
  void keepTime();

  Parallel& parallel_;
  const bool adversarial_;
  const uint64_t base_latency_ns_;
  const size_t busy_workers_wanted_; // workers not blocked in a host function

  std::mutex mutex_; // of all below
  std::vector<Device> devices_;
  std::array<ReadyList, kPriorities> ready_;
  std::atomic<size_t> ready_count_{0}; // polled by idle workers
  std::deque<std::shared_ptr<Stream>> unblocked_;
  uint64_t random_state_; // the adversary's
  uint64_t latency_ns_;
  uint64_t submissions_ = 0; // to all streams
  bool stopping_ = false;
  std::atomic<bool> quit_{false}; // stopping or abandoned; polled by idle workers

  std::condition_variable work_ready_;
  size_t spinning_ = 0;          // idle workers that look
  bool napping_ = false;         // an idle worker is in work_ready_ for a short time
  size_t sleeping_ = 0;          // idle workers in work_ready_ for long
  size_t in_host_functions_ = 0; // workers that may be blocked for long
  std::list<std::thread> workers_;
  std::list<std::thread> retired_; // to be joined

  std::condition_variable deadline_changed_;
  std::vector<Deadline> deadlines_; // heap
  std::thread timekeeper_;
};

} // namespace puone::sim
