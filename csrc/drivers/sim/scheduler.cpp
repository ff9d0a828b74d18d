// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/sim/scheduler.h"

#include <sys/prctl.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <exception>
#include <system_error>

#include "drivers/sim/host_guard.h"
#include "drivers/sim/spin.h"

namespace puone::sim {
namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

/// Maximum number of host functions that run at the same time; others wait.
constexpr size_t kMaxHostFunctions = 64;
/// An idle worker first waits for short times (naps), then sleeps, and ends after kRetire. A worker
/// that polled instead would take each small piece separately, and compete for the lock each time.
constexpr nanoseconds kFirstNap = std::chrono::microseconds(50);
constexpr nanoseconds kLastNap = std::chrono::microseconds(200);
constexpr nanoseconds kRetire = std::chrono::seconds(5);
/// A thread that synchronises polls this long before it sleeps.
constexpr nanoseconds kWaitSpin = std::chrono::microseconds(30);
/// Pieces of work of one stream that a thread runs before it takes the lock again.
constexpr uint64_t kBatch = 16;
/// How often a thread tries to lock before it sleeps: the lock is usually held for less time than
/// the system call takes.
constexpr int kLockSpins = 100;
/// In an adversarial schedule: how long a caller waits for a host function; how long the host makes
/// no call before the timekeeper takes steps; how often a waiting thread looks for steps to take.
constexpr nanoseconds kPatience = std::chrono::milliseconds(20);
constexpr nanoseconds kHostPause = std::chrono::milliseconds(100);
constexpr nanoseconds kHostSlice = std::chrono::milliseconds(10);
constexpr nanoseconds kLookAgain = std::chrono::microseconds(200);
/// One step in so many changes the order of the streams.
constexpr uint64_t kStepsPerOrder = 8;

/// SplitMix64 (Steele, Lea and Flood, 2014): any seed is a good one.
uint64_t mix(uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

uint64_t now() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count());
}

/// Writes when work ran, if a trace asks for it.
class Timing {
 public:
  explicit Timing(const Work& work) : record_(work.traced) {
    if (record_ != nullptr) record_->begin_ns = now();
  }
  ~Timing() {
    if (record_ != nullptr) record_->end_ns = now();
  }
  Timing(const Timing&) = delete;
  Timing& operator=(const Timing&) = delete;

 private:
  puone_trace_record* const record_;
};

} // namespace

Scheduler::Scheduler(const Options& options, Parallel& parallel)
    : parallel_(parallel),
      adversarial_(options.adversarial),
      base_latency_ns_(options.latency_ns),
      busy_workers_wanted_(std::max(2, options.cores)),
      devices_(static_cast<size_t>(options.devices)),
      random_state_(options.seed),
      latency_ns_(options.latency_ns) {}

Scheduler::~Scheduler() {
  Lock lock(mutex_);
  for (size_t device = 0; device < devices_.size(); ++device) {
    waitDevice(lock, static_cast<int32_t>(device));
  }
  stopping_ = true;
  quit_.store(true, std::memory_order_relaxed);
  work_ready_.notify_all();
  deadline_changed_.notify_all();
  std::list<std::thread> threads = std::move(workers_);
  threads.splice(threads.end(), retired_);
  lock.unlock();
  for (std::thread& thread : threads) thread.join();
  if (timekeeper_.joinable()) timekeeper_.join();
}

Scheduler::Lock Scheduler::lock() {
  Lock lock(mutex_, std::try_to_lock);
  if (!lock) acquire(lock);
  return lock;
}

void Scheduler::acquire(Lock& lock) {
  for (int i = 0; i < kLockSpins; ++i) {
    if (lock.try_lock()) return;
    relax();
  }
  lock.lock();
}

// ---- streams ----

void Scheduler::submit(const std::shared_ptr<Stream>& stream, std::unique_ptr<Work> work) {
  checkAlive(stream->device);
  Stream& s = *stream;
  Work* added = work.release();
  (s.tail != nullptr ? s.tail->next : s.head) = added;
  s.tail = added;
  ++s.submitted;
  ++submissions_;
  if (s.number == 0) s.number = ++streams_;
  if (adversarial_) startTimekeeper();
  if (added->kind == Work::Kind::kRecord) added->record->sequence = s.submitted;
  if (s.state != Stream::State::kIdle) return;
  s.self = stream;
  devices_[s.device].busy.pushBack(s);
  advance(s);
}

/// Processes the stream's queue until work needs a thread; then every stream that this unblocked.
void Scheduler::advance(Stream& stream) {
  settle(stream);
  while (!unblocked_.empty()) {
    const std::shared_ptr<Stream> next = std::move(unblocked_.front());
    unblocked_.pop_front();
    settle(*next);
  }
}

void Scheduler::settle(Stream& stream) {
  while (Work* work = stream.head) {
    switch (work->kind) {
      case Work::Kind::kRecord:
        complete(*work->record);
        finishHead(stream);
        break;
      case Work::Kind::kWait:
        if (!work->record->done && !devices_[stream.device].lost) {
          stream.state = Stream::State::kBlocked;
          work->record->blocked.push_back(&stream);
          return;
        }
        finishHead(stream);
        break;
      case Work::Kind::kDevice:
      case Work::Kind::kHostFunction:
        makeReady(stream);
        return;
    }
  }
  stream.state = Stream::State::kIdle;
  devices_[stream.device].busy.erase(stream);
  stream.self.reset(); // may delete the stream: callers hold a reference while they need it
}

void Scheduler::complete(Record& record) {
  if (record.timed) record.time_ns = now();
  record.done = true;
  for (Stream* stream : record.blocked) unblocked_.push_back(stream->self);
  record.blocked = {};
}

void Scheduler::finishHead(Stream& stream) {
  stream.dropHead();
  // No other thread writes it now, and waiters change under the lock.
  stream.completed.store(
      stream.completed.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  if (stream.waiters > 0) stream.done.notify_all();
}

void Scheduler::makeReady(Stream& stream) {
  stream.state = Stream::State::kReady;
  ready_[stream.priority].pushBack(stream);
  changeReadyCount(+1);
  callWorker(stream.head->urgent);
}

void Scheduler::leaveReady(Stream& stream) {
  ready_[stream.priority].erase(stream);
  changeReadyCount(-1);
}

/// Written under the lock only, so that it takes no atomic addition.
void Scheduler::changeReadyCount(int change) {
  const size_t count = ready_count_.load(std::memory_order_relaxed);
  ready_count_.store(count + static_cast<size_t>(change), std::memory_order_relaxed);
}

// ---- running ----

/// Runs up to `most` pieces of work of a ready stream and advances the stream. `comes_back`: the
/// caller will look for ready streams afterwards, so that no other worker is needed. The stream may
/// be deleted by this.
void Scheduler::execute(Lock& lock, Stream& stream, uint64_t most, bool comes_back) {
  leaveReady(stream);
  stream.state = Stream::State::kRunning;
  stream.handed_over = false;
  if (!skips(stream) && !devices_[stream.device].lost) {
    const bool device_work = stream.head->kind == Work::Kind::kDevice;
    uint64_t lasts_ns = device_work ? latency_ns_ : 0;
    const uint64_t start = lasts_ns > 0 ? now() : 0;
    const uint64_t length = lasts_ns > 0 ? 1 : batchLength(stream, most);
    auto error = length == 1 && stream.head->brief ? run(*stream.head, lasts_ns)
                                                   : runBatch(lock, stream, length, lasts_ns);
    if (error) fail(stream, *stream.head, std::move(*error));
    if (lasts_ns > 0 && !devices_[stream.device].lost) {
      finishAt((start > 0 ? start : now()) + lasts_ns, stream);
      return;
    }
  }
  finishHead(stream);
  spinning_ += comes_back ? 1 : 0;
  advance(stream);
  spinning_ -= comes_back ? 1 : 0;
}

/// How many pieces at the head of the queue one thread may run without the lock. An adversarial
/// schedule decides again before each piece.
uint64_t Scheduler::batchLength(const Stream& stream, uint64_t most) const {
  if (adversarial_ || stream.head->kind != Work::Kind::kDevice) return 1;
  uint64_t length = 1;
  for (const Work* work = stream.head->next; work != nullptr && length < std::min(most, kBatch);
       work = work->next) {
    if (work->kind != Work::Kind::kDevice) break;
    ++length;
  }
  return length;
}

/// Runs work without the lock: the head, and up to `length` - 1 pieces after it while none fails or
/// needs a deadline, no thread waits for the stream and no other stream is ready. All of them but
/// the last are complete and removed from the queue afterwards. Returns the error of the last one;
/// `lasts_ns` is increased to the duration that it asks for.
std::optional<Error> Scheduler::runBatch(
    Lock& lock, Stream& stream, uint64_t length, uint64_t& lasts_ns) {
  const bool host_function = stream.head->kind == Work::Kind::kHostFunction;
  const std::atomic<bool>& lost = devices_[stream.device].lost;
  if (host_function) ++in_host_functions_;
  // This thread may be busy for a long time: another one must run the other ready streams.
  hurry();
  Work* work = stream.head;
  if (!host_function) {
    resumed_.wait(lock, [this] { return pausing_ == 0; });
    ++running_;
  }
  lock.unlock();
  std::optional<Error> error = run(*work, lasts_ns);
  // The queue may grow at its end meanwhile; the links inside the batch do not change.
  for (; length > 1 && !error && lasts_ns == 0; --length) {
    if (ready_count_.load(std::memory_order_relaxed) > 0 || stream.waiters > 0 || lost) break;
    stream.completed.fetch_add(1);
    work = work->next;
    error = run(*work, lasts_ns);
  }
  acquire(lock);
  while (stream.head != work) stream.dropHead();
  if (host_function) {
    --in_host_functions_;
  } else if (--running_ == 0 && pausing_ > 0) {
    quiet_.notify_all();
  }
  return error;
}

std::optional<Error> Scheduler::run(Work& work, uint64_t& lasts_ns) {
  try {
    const Running running(work.name);
    const Timing timing(work);
    if (work.injected_error) puone::fail(PUONE_INTERNAL, "injected by the fault extension");
    lasts_ns = std::max(lasts_ns, work.run());
    return std::nullopt;
  } catch (Error& thrown) {
    return std::move(thrown);
  } catch (const std::exception& thrown) {
    return Error{PUONE_INTERNAL, thrown.what()};
  }
}

/// Whether the work that is queued on the stream is skipped, because other work has failed.
bool Scheduler::skips(const Stream& stream) {
  return stream.failed || (stream.launched_on != nullptr && stream.launched_on->failed);
}

void Scheduler::fail(Stream& stream, const Work& work, Error error) {
  error.text = format("%s failed on puone:%d: ", work.name, stream.device) + error.text;
  error.origin = work.origin;
  const bool of_launch = stream.launched_on != nullptr;
  const std::shared_ptr<Stream>& to = of_launch ? stream.launched_on : stream.self;
  // Streams of one launch may fail at the same time: the first error is the launch's.
  if (to->failed) return;
  const uint64_t sequence =
      of_launch ? stream.covered_by : stream.completed.load(std::memory_order_relaxed) + 1;
  devices_[to->device].errors.push_back({to, sequence, std::move(error)});
  to->failed = true;
}

/// Runs work that `stream` needs to complete `sequence` pieces. Returns false if there is none that
/// the calling thread may run.
bool Scheduler::help(Lock& lock, Stream& stream, uint64_t sequence) {
  Stream* candidate = &stream;
  while (candidate->state == Stream::State::kBlocked) {
    const Record& record = *candidate->head->record;
    sequence = record.sequence;
    candidate = record.stream.get();
  }
  if (candidate->state != Stream::State::kReady) return false;
  // Host functions run only on a driver thread: they may need a lock that the caller holds.
  if (candidate->head->kind != Work::Kind::kDevice) return false;
  execute(lock, *candidate, sequence - candidate->completed.load(), /*comes_back=*/false);
  return true;
}

/// Whether a worker may take the stream.
bool Scheduler::mayTake(const Stream& stream) const {
  if (adversarial_ && !stream.handed_over) return false;
  return stream.head->kind != Work::Kind::kHostFunction || in_host_functions_ < kMaxHostFunctions;
}

/// The next stream for a worker: of the most urgent ones, the one that has been ready longest.
Stream* Scheduler::pickReady() const {
  const size_t count = ready_count_.load(std::memory_order_relaxed);
  if (count == 0 || quit_.load(std::memory_order_relaxed)) return nullptr;
  for (const ReadyList& list : ready_) {
    for (Stream* s = list.first(); s != nullptr; s = ReadyList::after(*s)) {
      if (mayTake(*s)) return s;
    }
  }
  return nullptr;
}

// ---- the adversarial schedule ----

void Scheduler::tick() {
  if (!adversarial_) return;
  Lock lock = this->lock();
  ++host_calls_;
  ++hosts_stepping_;
  // Half of the calls take no step and each further step is half as likely: as much work is done as
  // is queued, in the long run, so that queues become long and short.
  for (int steps = std::countr_one(random()); steps > 0 && step(lock); --steps) {
  }
  --hosts_stepping_;
}

/// Runs the next piece of work. Returns false if there is none that can run now.
bool Scheduler::step(Lock& lock) {
  Stream* const stream = pickStep();
  if (stream == nullptr) return false;
  if (stream->head->kind == Work::Kind::kHostFunction) {
    handOver(lock, *stream);
  } else {
    execute(lock, *stream, 1, /*comes_back=*/false);
  }
  return true;
}

/// The ready stream that is first in the present order.
Stream* Scheduler::pickStep() {
  if (quit_.load(std::memory_order_relaxed)) return nullptr;
  if (const uint64_t draw = random(); draw % kStepsPerOrder == 0) order_ = draw;
  Stream* first = nullptr;
  for (const ReadyList& list : ready_) {
    for (Stream* s = list.first(); s != nullptr; s = ReadyList::after(*s)) {
      if (s->handed_over) continue;
      if (first == nullptr || mix(order_ + s->number) < mix(order_ + first->number)) first = s;
    }
  }
  return first;
}

/// Lets a worker run the host function that is the stream's head, and waits until it has, or for a
/// limited time.
void Scheduler::handOver(Lock& lock, Stream& stream) {
  const std::shared_ptr<Stream> kept = stream.self;
  const uint64_t sequence = kept->completed.load() + 1;
  kept->handed_over = true;
  wakeWorker();
  ++kept->waiters;
  kept->done.wait_for(lock, kPatience, [&] { return kept->completed.load() >= sequence; });
  --kept->waiters;
}

uint64_t Scheduler::random() {
  return mix(random_state_ += 0x9e3779b97f4a7c15);
}

// ---- waiting ----

void Scheduler::wait(
    Lock& lock, const std::shared_ptr<Stream>& stream, uint64_t sequence, bool spin) {
  const auto done = [&] { return stream->completed.load() >= sequence; };
  if (adversarial_) {
    ++host_calls_;
    ++hosts_stepping_;
    while (!done()) {
      if (!step(lock)) stream->done.wait_for(lock, kLookAgain); // a host function, a delay
    }
    --hosts_stepping_;
    return;
  }
  while (!done()) {
    if (help(lock, *stream, sequence)) continue;
    hurry();
    if (std::exchange(spin, false)) {
      lock.unlock();
      look(done);
      acquire(lock);
      continue;
    }
    // A thread that completes work without the lock reads `waiters` afterwards: so either it sees
    // this thread, or this thread sees the completed work.
    ++stream->waiters;
    if (!done()) stream->done.wait(lock);
    --stream->waiters;
  }
}

/// Polls for a short time whether the work is complete, and helps if it is spread over cores.
template <class Done>
void Scheduler::look(const Done& done) {
  uint64_t seen = 0;
  const auto lookUp = [&] { return done() || parallel_.canAssist(seen); };
  while (spinUntil(kWaitSpin, lookUp) && !done()) parallel_.assist(seen);
}

void Scheduler::waitDevice(Lock& lock, int32_t device) {
  std::vector<std::pair<std::shared_ptr<Stream>, uint64_t>> pending;
  const BusyList& busy = devices_[device].busy;
  for (Stream* s = busy.first(); s != nullptr; s = BusyList::after(*s)) {
    pending.emplace_back(s->self, s->submitted);
  }
  for (const auto& [stream, sequence] : pending) wait(lock, stream, sequence, true);
}

void Scheduler::report(const Stream& stream, uint64_t sequence) {
  if (!stream.failed) return;
  std::list<AsyncError>& errors = devices_[stream.device].errors;
  const auto found = std::find_if(errors.begin(), errors.end(), [&](const AsyncError& error) {
    return error.stream.get() == &stream && error.sequence <= sequence;
  });
  if (found == errors.end()) return;
  const AsyncError reported = std::move(*found);
  errors.erase(found);
  reported.stream->failed = false;
  throw reported.error;
}

void Scheduler::reportDevice(int32_t device) {
  const std::list<AsyncError>& errors = devices_[device].errors;
  if (!errors.empty()) report(*errors.front().stream, UINT64_MAX);
}

// ---- injected faults ----

void Scheduler::checkAlive(int32_t device) const {
  if (devices_[device].lost) puone::fail(PUONE_DEVICE_LOST, "puone:%d is lost", device);
}

void Scheduler::loseDevice(int32_t device) {
  Device& lost = devices_[device];
  lost.lost = true;
  // execute() drops work that runs or is ready; blocked streams must be advanced to drop theirs.
  std::vector<std::shared_ptr<Stream>> blocked;
  for (Stream* s = lost.busy.first(); s != nullptr; s = BusyList::after(*s)) {
    if (s->state == Stream::State::kBlocked) blocked.push_back(s->self);
  }
  for (const auto& stream : blocked) {
    if (stream->state != Stream::State::kBlocked) continue; // unblocked by an earlier one
    std::erase(stream->head->record->blocked, stream.get());
    advance(*stream);
  }
  for (Deadline& deadline : deadlines_) {
    if (deadline.stream->device == device) deadline.time_ns = 0;
  }
  std::make_heap(deadlines_.begin(), deadlines_.end());
  deadline_changed_.notify_one();
}

void Scheduler::clearFaults() {
  latency_ns_ = base_latency_ns_;
  for (Device& device : devices_) device.lost = false;
}

void Scheduler::abandon() {
  // Without the lock: a thread may have been stopped while it held the lock.
  quit_.store(true, std::memory_order_relaxed);
}

// ---- threads ----

/// Ensures that a worker takes ready work, at once if it is urgent. Waking a thread costs more than
/// most work takes, so work that is not urgent is left to a worker that naps, or to the thread that
/// waits for it.
void Scheduler::callWorker(bool urgent) {
  if (adversarial_) {
    deadline_changed_.notify_one(); // the timekeeper sees to it that the work is not forgotten
    return;
  }
  if (spinning_ >= ready_count_.load(std::memory_order_relaxed)) return;
  if (napping_ && !urgent) return;
  wakeWorker();
}

void Scheduler::wakeWorker() {
  if (napping_ || sleeping_ > 0) {
    work_ready_.notify_one();
  } else if (workers_.size() - in_host_functions_ < busy_workers_wanted_) {
    startWorker();
  }
}

void Scheduler::hurry() {
  if (ready_count_.load(std::memory_order_relaxed) > 0) callWorker(true);
}

void Scheduler::startWorker() {
  for (std::thread& thread : retired_) thread.join(); // they do not use the lock any more
  retired_.clear();
  const auto self = workers_.emplace(workers_.end());
  try {
    *self = std::thread([this, self] { serve(self); });
  } catch (const std::system_error&) {
    workers_.erase(self); // the other workers, or the next thread to synchronise, do the work
  }
}

void Scheduler::serve(std::list<std::thread>::iterator self) {
  const SignalStack signal_stack;
  prctl(PR_SET_TIMERSLACK, 1); // short naps
  Lock lock(mutex_);
  for (;;) {
    if (Stream* stream = pickReady()) {
      execute(lock, *stream, kBatch, /*comes_back=*/true);
    } else if (stopping_) {
      return;
    } else if (!waitForWork(lock)) {
      retired_.splice(retired_.end(), workers_, self);
      return;
    }
  }
}

/// Returns false if there was no work for so long that the worker may end.
bool Scheduler::waitForWork(Lock& lock) {
  const auto called = [this] {
    return ready_count_.load(std::memory_order_relaxed) > 0 ||
           quit_.load(std::memory_order_relaxed);
  };
  const bool blocked = called(); // ready work may not be taken now: wait for other work
  if (!blocked && !napping_ && nap(lock, called)) return true;
  ++sleeping_;
  const bool woken = blocked ? work_ready_.wait_for(lock, kRetire) == std::cv_status::no_timeout
                             : work_ready_.wait_for(lock, kRetire, called);
  --sleeping_;
  return woken;
}

/// Waits for short times while work is being submitted, even if other threads take it. Only one
/// worker does so at a time.
template <class Called>
bool Scheduler::nap(Lock& lock, const Called& called) {
  napping_ = true;
  bool woken = called();
  for (nanoseconds time = kFirstNap; !woken && time <= kLastNap; time *= 2) {
    const uint64_t before = submissions_;
    woken = work_ready_.wait_for(lock, time, called);
    if (submissions_ != before) time = kFirstNap / 2;
  }
  napping_ = false;
  return woken;
}

void Scheduler::finishAt(uint64_t time_ns, Stream& stream) {
  stream.state = Stream::State::kTimed;
  deadlines_.push_back({time_ns, &stream});
  std::push_heap(deadlines_.begin(), deadlines_.end());
  startTimekeeper();
  if (deadlines_.front().stream == &stream) deadline_changed_.notify_one();
}

void Scheduler::startTimekeeper() {
  if (!timekeeper_.joinable()) timekeeper_ = std::thread([this] { keepTime(); });
}

/// The timekeeper's thread: completes work that lasts longer than it ran, at its deadline; and
/// takes the steps of an adversarial schedule while the host makes no call.
void Scheduler::keepTime() {
  const SignalStack signal_stack;
  prctl(PR_SET_TIMERSLACK, 1);
  Lock lock(mutex_);
  while (!stopping_) {
    if (!deadlines_.empty() && deadlines_.front().time_ns <= now()) {
      finishTimed();
    } else if (adversarial_ && ready_count_.load(std::memory_order_relaxed) > 0) {
      if (hostPauses(lock)) step(lock);
    } else if (deadlines_.empty()) {
      deadline_changed_.wait(lock);
    } else {
      const nanoseconds next(deadlines_.front().time_ns);
      deadline_changed_.wait_until(lock, steady_clock::time_point(next));
    }
  }
}

/// Completes the work whose deadline is the next one.
void Scheduler::finishTimed() {
  const std::shared_ptr<Stream> stream = deadlines_.front().stream->self;
  std::pop_heap(deadlines_.begin(), deadlines_.end());
  deadlines_.pop_back();
  if (stream->head->traced != nullptr) stream->head->traced->end_ns = now();
  finishHead(*stream);
  advance(*stream);
}

/// Whether the host has made no call for kHostPause. Waits for a part of that time, at most until
/// the next deadline.
bool Scheduler::hostPauses(Lock& lock) {
  if (host_calls_ != seen_calls_ || hosts_stepping_ > 0) {
    seen_calls_ = host_calls_;
    pause_.restart();
  }
  if (pause_.length() >= static_cast<uint64_t>(kHostPause.count())) return true;
  const uint64_t slice = static_cast<uint64_t>(kHostSlice.count());
  const uint64_t next = deadlines_.empty() ? UINT64_MAX : deadlines_.front().time_ns;
  const nanoseconds until(std::min(now() + slice, next));
  deadline_changed_.wait_until(lock, steady_clock::time_point(until));
  pause_.look(slice);
  return false;
}

} // namespace puone::sim
