// SPDX-License-Identifier: BSD-3-Clause
// Runs the work that is queued on streams, asynchronously and in each stream's order.
//
// A stream whose first piece of work can run is *ready* and is in a ready list by priority. Worker
// threads take ready streams, one piece of work at a time. They are started when there is work, and
// more are started while some block in host functions. Records and waits need no thread: the thread
// that completes the work before them also processes them. A thread that synchronises helps: it
// runs the work itself if no worker has taken it yet, which saves two context switches, or else
// joins it.
//
// One lock guards everything. Work runs without the lock, several small pieces of one stream in
// sequence, so that submitting and running threads rarely compete for the lock.
//
// With PUONE_SIM_SEED the schedule is adversarial and repeats itself: it is a function of the seed
// and of the order of the host's calls, and no clock is in it. The host's calls decide: each one
// that queues work or asks for its state first lets the device take a random number of steps, often
// none, and a wait takes steps until what it waits for is done. A step runs one piece of work of
// one ready stream on the calling thread, of the stream that comes first in a random order, which
// changes now and then; so a stream can fall behind another one by any amount. Three things remain
// that clocks decide: a host function runs on a worker, and the caller waits for it for a limited
// time, since it may wait for the caller; work that lasts (a delay, a latency) ends in its time;
// and a host that makes no call for a while does not stop the device, since the timekeeper then
// takes steps.
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
#include "drivers/sim/host_pause.h"
#include "drivers/sim/options.h"
#include "drivers/sim/parallel.h"
#include "drivers/sim/stream.h"

namespace puone::sim {

class Scheduler {
 public:
  using Lock = std::unique_lock<std::mutex>;

  /// A lower number is more urgent; stream priorities are from -(kPriorities - 1) to 0.
  static constexpr int32_t kPriorities = 3;

  Scheduler(const Options& options, Parallel& parallel);
  /// Finishes all queued work, then joins every thread.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// The lock that guards streams, events and records. Methods that take a Lock& may release it
  /// temporarily; the other methods require the caller to hold it.
  [[nodiscard]] Lock lock();
  std::mutex& mutex() {
    return mutex_;
  }

  /// Queues work. Throws Error(DEVICE_LOST).
  void submit(const std::shared_ptr<Stream>& stream, std::unique_ptr<Work> work);

  /// In an adversarial schedule, the steps of the device before the host goes on. To be called
  /// without the lock, after work was queued and before its state is asked for.
  void tick();

  /// Waits until the stream has completed `sequence` pieces of work. `spin`: poll for a
  /// short time before sleeping.
  void wait(Lock& lock, const std::shared_ptr<Stream>& stream, uint64_t sequence, bool spin);
  /// Waits until all work that is now queued on the device is complete.
  void waitDevice(Lock& lock, int32_t device);

  /// Calls `change` while no device work runs; what is queued meanwhile runs afterwards.
  template <class Change>
  void pause(Lock& lock, const Change& change);

  /// Wakes or starts a worker for ready work at once, because a thread waits for it.
  void hurry();

  /// Throws the stream's unreported error, if work up to `sequence` caused one, and clears it.
  void report(const Stream& stream, uint64_t sequence);
  /// Throws the device's oldest unreported error, if any, and clears it.
  void reportDevice(int32_t device);

  /// Throws Error(DEVICE_LOST) if the device is lost.
  void checkAlive(int32_t device) const;
  void loseDevice(int32_t device);
  /// Restores lost devices and the initial latency.
  void clearFaults();
  void setLatency(uint64_t ns) {
    latency_ns_ = ns;
  }

  /// Process exit without shutdown(): threads start no more work. Does not wait.
  void abandon();

  /// Current number of threads.
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
    std::atomic<bool> lost = false; // read without the lock, between two pieces of work
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

  // Processing a stream's queue.
  void advance(Stream& stream);
  void settle(Stream& stream);
  void complete(Record& record);
  void finishHead(Stream& stream);
  void makeReady(Stream& stream);
  void leaveReady(Stream& stream);
  void changeReadyCount(int change);

  // Running work.
  void execute(Lock& lock, Stream& stream, uint64_t most, bool comes_back);
  uint64_t batchLength(const Stream& stream, uint64_t most) const;
  std::optional<Error> runBatch(Lock& lock, Stream& stream, uint64_t length, uint64_t& lasts_ns);
  static std::optional<Error> run(Work& work, uint64_t& lasts_ns);
  static bool skips(const Stream& stream);
  void fail(Stream& stream, const Work& work, Error error);
  bool help(Lock& lock, Stream& stream, uint64_t sequence);
  template <class Done>
  void look(const Done& done);
  Stream* pickReady() const;
  bool step(Lock& lock);
  Stream* pickStep();
  void handOver(Lock& lock, Stream& stream);
  bool mayTake(const Stream& stream) const;
  uint64_t random();

  // Threads.
  void callWorker(bool urgent);
  void wakeWorker();
  void startWorker();
  void serve(std::list<std::thread>::iterator self);
  bool waitForWork(Lock& lock);
  template <class Called>
  bool nap(Lock& lock, const Called& called);
  void finishAt(uint64_t time_ns, Stream& stream);
  void startTimekeeper();
  void keepTime();
  void finishTimed();
  bool hostPauses(Lock& lock);

  Parallel& parallel_;
  const bool adversarial_;
  const uint64_t base_latency_ns_;
  const size_t busy_workers_wanted_; // workers not blocked in a host function

  std::mutex mutex_; // guards the members below
  std::vector<Device> devices_;
  std::array<ReadyList, kPriorities> ready_;
  std::atomic<size_t> ready_count_{0}; // polled by idle workers
  std::deque<std::shared_ptr<Stream>> unblocked_;
  // Of the adversarial schedule.
  uint64_t random_state_;
  uint64_t order_ = 0;        // decides the order of the streams
  uint64_t streams_ = 0;      // that work was submitted to
  uint64_t host_calls_ = 0;   // that let the device take steps
  size_t hosts_stepping_ = 0; // threads in such a call
  uint64_t seen_calls_ = 0;   // host_calls_ when the timekeeper looked last
  HostPause pause_;           // since then

  uint64_t latency_ns_;
  uint64_t submissions_ = 0; // to all streams
  bool stopping_ = false;
  std::atomic<bool> quit_{false}; // stopping or abandoned; polled by idle workers

  size_t running_ = 0; // threads that run device work without the lock
  size_t pausing_ = 0; // threads that wait until there are none
  std::condition_variable quiet_;
  std::condition_variable resumed_;

  std::condition_variable work_ready_;
  size_t spinning_ = 0;          // workers that will look for ready streams
  bool napping_ = false;         // an idle worker waits for work_ready_ for a short time
  size_t sleeping_ = 0;          // idle workers that wait for work_ready_ for a long time
  size_t in_host_functions_ = 0; // workers that may be blocked for a long time
  std::list<std::thread> workers_;
  std::list<std::thread> retired_; // to be joined

  std::condition_variable deadline_changed_;
  std::vector<Deadline> deadlines_; // heap
  std::thread timekeeper_;
};

template <class Change>
void Scheduler::pause(Lock& lock, const Change& change) {
  struct Pausing {
    Scheduler& scheduler;
    explicit Pausing(Scheduler& s) : scheduler(s) {
      ++scheduler.pausing_;
    }
    ~Pausing() {
      if (--scheduler.pausing_ == 0) scheduler.resumed_.notify_all();
    }
  };
  const Pausing pausing(*this);
  quiet_.wait(lock, [this] { return running_ == 0; });
  change();
}

} // namespace puone::sim
