// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/session.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <set>
#include <utility>

#include "distributed/staging.h"
#include "distributed/work.h"
#include "runtime/dedicated_stream.h"
#include "runtime/deferred_error.h"
#include "runtime/device.h"
#include "runtime/driver.h"

namespace puone::distributed {
namespace {

// Ended operations that are kept before the list is searched for them.
constexpr size_t kCleanUpAfter = 64;
// Any error that has not been raised yet: what is called now may follow a call that failed.
constexpr c10::DeviceIndex kAnyDevice = -1;
// How often a group that is shut down looks whether it has failed.
constexpr std::chrono::milliseconds kDrainStep(50);

struct Sessions {
  std::mutex mutex;
  std::vector<std::weak_ptr<Session>> all;
};

Sessions& sessions() {
  static auto* instance = new Sessions(); // leaked: a group may die during static destruction
  return *instance;
}

std::vector<std::shared_ptr<Session>> livingSessions() {
  const std::lock_guard lock(sessions().mutex);
  std::vector<std::shared_ptr<Session>> living;
  for (const auto& known : sessions().all) {
    if (auto session = known.lock()) living.push_back(std::move(session));
  }
  return living;
}

} // namespace

Session::Session(c10::intrusive_ptr<c10d::Backend> host, int rank, std::shared_ptr<Native> native)
    : host_(std::move(host)), rank_(rank), native_(std::move(native)) {}

Session::~Session() {
  for (const auto& [key, channel] : channels_) {
    for (const auto& [device, pair] : channel.streams) {
      giveBackDedicatedStream(pair.first);
      giveBackDedicatedStream(pair.second);
    }
  }
}

std::shared_ptr<Session> Session::create(
    c10::intrusive_ptr<c10d::Backend> host, int rank, std::shared_ptr<Native> native) {
  auto session = std::make_shared<Session>(std::move(host), rank, std::move(native));
  auto& known = sessions();
  const std::lock_guard lock(known.mutex);
  std::erase_if(known.all, [](const auto& other) { return other.expired(); });
  known.all.push_back(session);
  return session;
}

// ---- a call ----

c10::intrusive_ptr<c10d::Work> Session::run(Call call) {
  hal(); // says so in a forked child, whose threads are missing
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const DeviceScope on_device(call.device.index());
  const std::lock_guard lock(calls_);
  requireUsable();
  raiseDeferredError(kAnyDevice);
  const auto operation =
      std::make_shared<Operation>(++count_, call.text, call.device.index(), call.parts.size());
  auto work = c10::make_intrusive<CallWork>(rank_, call.type, operation, call.outputs, call.blocks);
  work->comesFrom(call.source_rank);
  Channel& way = channel(call.kind, call.peer);
  const auto [out, in] = streams(way, call.device.index());
  add(operation);
  try {
    raiseDeferredError(kAnyDevice); // of a group that failed before it could see the operation
    queue(call, operation, way);
    work->endsAt(call.kind == Kind::kSend ? out : in);
  } catch (const c10::DistBackendError& error) {
    fail(operation->text() + " failed: " + error.what_without_backtrace());
    requireUsable(); // throws what it failed of
    throw;
  } catch (const std::exception& error) {
    // Other ranks wait for what was queued in part.
    fail(operation->text() + " could not be queued: " + error.what());
    throw;
  }
  return work;
}

void Session::queue(
    const Call& call, const std::shared_ptr<Operation>& operation, Channel& channel) {
  const auto [out, in] = streams(channel, call.device.index());
  Event before;
  before.record(getCurrentStream(call.device.index()));
  before.block(out);
  before.block(in);
  for (size_t i = 0; i < call.parts.size(); ++i) {
    const Part& part = call.parts[i];
    if (part.queue) {
      queueNative(operation, i, part, before, in);
      continue;
    }
    for (const auto& [device, host] : part.to_host) queueToHost(device, host, out);
    Event ready;
    ready.record(out);
    // A sent message is out of the caller's hands as soon as it is on the host.
    const bool comes_back = call.kind != Kind::kSend;
    // The ticket implies this order. As a wait of the stream, tools see it, too.
    if (comes_back) ready.block(in);
    push(channel, call.kind, operation, i, part, std::move(ready));
    if (comes_back) queueTake(operation->ticket(i), in);
    for (const auto& [device, host] : part.to_device) queueToDevice(host, device, in);
    if (part.last) {
      const c10::StreamGuard on_stream(in.unwrap());
      part.last();
    }
  }
  for (const Part& part : call.parts) {
    for (const Copy& copy : part.to_host) keepFor(copy.device, out);
    for (const Copy& copy : part.to_device) keepFor(copy.device, in);
    for (const auto& tensor : part.uses) keepFor(tensor, in); // which waits for a native part, too
  }
}

// What the thread that looks after a native part needs of it.
struct Session::Watched {
  Event ready;
  Event done;
  std::chrono::milliseconds timeout;
  std::atomic<bool> queued = false; // up to and including `done`
};

void Session::queueNative(
    const std::shared_ptr<Operation>& operation,
    size_t index,
    const Part& part,
    const Event& before,
    const Stream& in) {
  Channel& way = channel(Kind::kNative, kAnyRank);
  const Stream own = streams(way, in.deviceIndex()).first;
  const auto watched = std::make_shared<Watched>();
  watched->timeout = part.timeout;
  before.block(own);
  watched->ready.record(own);
  // Before the library is called: it may wait for other ranks, and for them too long.
  way.thread.push([session = shared_from_this(), operation, index, watched] {
    session->watch(*operation, index, *watched);
  });
  {
    const c10::StreamGuard on_stream(own.unwrap());
    part.queue(own);
  }
  watched->done.record(own);
  watched->queued.store(true, std::memory_order_release);
  watched->done.block(in);
}

namespace {

// The transport's errors are of no type of their own.
c10::intrusive_ptr<c10d::Work> announce(const Part& part, c10d::Backend& host) {
  try {
    return part.exchange(host);
  } catch (const c10::Error& error) {
    C10_THROW_ERROR(DistBackendError, error.what_without_backtrace());
  } catch (const std::exception& error) {
    C10_THROW_ERROR(DistBackendError, error.what());
  }
}

} // namespace

void Session::push(
    Channel& channel,
    Kind kind,
    const std::shared_ptr<Operation>& operation,
    size_t index,
    const Part& part,
    Event ready) {
  // Without the device's tensors: they belong to the caller, and Python may have objects of them.
  const auto mine = std::make_shared<Part>();
  mine->exchange = part.exchange;
  mine->finish = part.finish;
  if (kind == Kind::kReceive && part.exchange) {
    // Announced now, and only waited for in order: messages with tags may come in another one.
    mine->exchange = [work = announce(part, *host_)](c10d::Backend&) { return work; };
  }
  const auto reached = std::make_shared<Event>(std::move(ready));
  channel.thread.push([session = shared_from_this(), kind, operation, index, mine, reached] {
    if (kind == Kind::kSend) {
      session->send(operation, index, *mine, *reached);
    } else {
      session->exchange(*operation, index, *mine, *reached);
    }
  });
}

Session::Channel& Session::channel(Kind kind, int peer) {
  return channels_[{kind, peer}];
}

std::pair<Stream, Stream> Session::streams(Channel& channel, c10::DeviceIndex device) {
  const auto known = channel.streams.find(device);
  if (known != channel.streams.end()) return known->second;
  const std::pair<Stream, Stream> pair(takeDedicatedStream(device), takeDedicatedStream(device));
  channel.streams.emplace(device, pair);
  return pair;
}

// ---- on the threads of the channels ----

namespace {

// Not Event::synchronize(): an error that was deferred is for the program, not for this thread.
void waitForDevice(const Event& ready) {
  if (ready.handle() != nullptr) PUONE_CHECK(hal().event_synchronize(ready.handle()));
}

} // namespace

template <class Task>
void Session::attempt(Operation& operation, const Task& task) {
  if (operation.ended()) return; // the group has failed
  try {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    // Host memory is used here in an order that only the tickets make: the sanitizer, which watches
    // operators, cannot see it.
    const at::DisableRecordFunctionGuard unobserved;
    task();
  } catch (const c10::Error& error) {
    fail(operation.text() + " failed: " + error.what_without_backtrace());
  } catch (const std::exception& error) {
    fail(operation.text() + " failed: " + error.what());
  }
}

void Session::exchange(Operation& operation, size_t index, const Part& part, const Event& ready) {
  attempt(operation, [&] {
    waitForDevice(ready);
    if (operation.ended()) return; // so what the device had to write may be missing
    operation.exchanges();
    if (part.exchange) {
      const auto work = part.exchange(*host_);
      if (work) work->wait();
      if (part.finish) part.finish(*work);
    }
    operation.finishPart(index);
  });
}

void Session::watch(Operation& operation, size_t index, const Watched& watched) {
  attempt(operation, [&] {
    waitForDevice(watched.ready);
    if (operation.ended()) return;
    operation.exchanges();
    native_->await(
        [&] {
          return watched.queued.load(std::memory_order_acquire) &&
                 isDone(hal().event_query(watched.done.handle()), "event_query");
        },
        watched.timeout);
    operation.finishPart(index);
  });
}

void Session::send(
    const std::shared_ptr<Operation>& operation,
    size_t index,
    const Part& part,
    const Event& ready) {
  attempt(*operation, [&] {
    waitForDevice(ready);
    if (operation->ended()) return;
    operation->exchanges();
    const auto work = part.exchange ? part.exchange(*host_) : nullptr;
    sent_.push([session = shared_from_this(), operation, index, work] {
      session->attempt(*operation, [&] {
        if (work) work->wait();
        operation->finishPart(index);
      });
    });
  });
}

// ---- the state of the group ----

void Session::requireUsable() const {
  const std::lock_guard lock(mutex_);
  if (failure_) failure_->raise();
  TORCH_CHECK_WITH(DistBackendError, !shut_down_, "pccl: the process group was shut down");
}

bool Session::hasFailed() const {
  const std::lock_guard lock(mutex_);
  return failure_ != nullptr;
}

void Session::add(const std::shared_ptr<Operation>& operation) {
  const std::lock_guard lock(mutex_);
  if (operations_.size() >= kCleanUpAfter) {
    std::erase_if(operations_, [](const auto& other) { return other->ended(); });
  }
  operations_.push_back(operation);
}

std::vector<std::string> Session::pending() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> lines;
  for (const auto& operation : operations_) {
    if (!operation->ended()) lines.push_back(operation->describe());
  }
  return lines;
}

void Session::fail(const std::string& reason) {
  std::string message = c10::str("pccl, rank ", rank_, ": ", reason);
  const auto unfinished = pending();
  if (!unfinished.empty()) message += "\nunfinished calls of this group:";
  for (const auto& line : unfinished) message += "\n  " + line;
  std::vector<std::shared_ptr<Operation>> failed;
  std::shared_ptr<const Failure> failure;
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    std::erase_if(operations_, [](const auto& operation) { return operation->ended(); });
    failed.swap(operations_);
    std::set<c10::DeviceIndex> devices;
    for (const auto& operation : failed) devices.insert(operation->device());
    failure_ = failure = std::make_shared<const Failure>(message, devices);
  }
  for (const auto& other : livingSessions()) {
    if (failed.empty()) break;
    if (other.get() != this) other->failBehind(failed.front()->begun(), reason);
  }
  for (const auto& operation : failed) operation->fail(failure);
  if (native_) native_->abort();
  for (const auto& operation : failed) operation->release();
}

void Session::failBehind(std::chrono::steady_clock::time_point since, const std::string& reason) {
  const auto depends = [&](const auto& operation) {
    return operation->state() == Operation::State::kWaitsForDevice && operation->begun() >= since;
  };
  {
    const std::lock_guard lock(mutex_);
    if (std::none_of(operations_.begin(), operations_.end(), depends)) return;
  }
  fail("a call of another group, before calls of this one, failed: " + reason);
}

void Session::shutDown() {
  {
    const std::lock_guard lock(mutex_);
    shut_down_ = true;
  }
  for (SerialThread* thread : threads()) {
    // After a failure a thread may be stuck until the transport gives up.
    while (!hasFailed() && !thread->drain(kDrainStep)) {
    }
  }
  if (native_ && !hasFailed()) native_->close();
}

std::vector<SerialThread*> Session::threads() {
  const std::lock_guard lock(calls_);
  std::vector<SerialThread*> all;
  for (auto& [key, channel] : channels_) all.push_back(&channel.thread);
  all.push_back(&sent_); // last: the others push to it
  return all;
}

bool abortSessions(std::chrono::milliseconds grace) {
  const auto living = livingSessions();
  const auto end = std::chrono::steady_clock::now() + grace;
  for (const auto& session : living) {
    std::vector<std::shared_ptr<Operation>> operations;
    {
      const std::lock_guard lock(session->mutex_);
      operations = session->operations_;
    }
    for (const auto& operation : operations) {
      operation->waitFor(
          std::chrono::duration_cast<std::chrono::milliseconds>(
              end - std::chrono::steady_clock::now()));
    }
    if (!session->pending().empty()) session->fail("the process exits");
  }
  bool idle = true;
  for (const auto& session : living) {
    for (SerialThread* thread : session->threads()) idle = thread->drain(kDrainStep) && idle;
  }
  return idle;
}

} // namespace puone::distributed
