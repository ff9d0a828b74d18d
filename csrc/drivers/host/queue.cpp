// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/host/queue.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "drivers/common/correlation.h"

namespace puone::host {
namespace {

thread_local const char* running_work = nullptr;

/// On CLOCK_MONOTONIC, as traces have it.
uint64_t now() {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::nanoseconds(time).count());
}

} // namespace

Queues::~Queues() {
  std::vector<Queue*> all;
  for (const auto& [key, queue] : queues_) all.push_back(queue.get());
  for (Queue* queue : all) destroy(queue);
}

Queue* Queues::create() {
  const Lock lock(mutex_);
  auto queue = std::make_shared<Queue>();
  return queues_.emplace(queue.get(), queue).first->second.get();
}

void Queues::destroy(Queue* queue) {
  std::shared_ptr<Queue> kept; // records may still name it
  {
    const Lock lock(mutex_);
    const auto found = queues_.find(queue);
    kept = std::move(found->second);
    queues_.erase(found);
    kept->ends = true;
    kept->more.notify_all();
  }
  if (kept->thread.joinable()) kept->thread.join();
}

void Queues::submit(Queue* queue, Work work) {
  const Lock lock(mutex_);
  push(queues_.at(queue), std::move(work));
}

std::shared_ptr<Record> Queues::record(Queue* queue) {
  const Lock lock(mutex_);
  auto record = std::make_shared<Record>();
  record->queue = queues_.at(queue);
  record->position = queue->submitted + 1;
  push(record->queue, {.completes = record});
  return record;
}

void Queues::push(const std::shared_ptr<Queue>& queue, Work work) {
  if (tracing_ == Tracing::kOn && work.body) trace(*queue, work);
  queue->waiting.push_back(std::move(work));
  ++queue->submitted;
  if (!queue->thread.joinable()) {
    queue->thread = std::thread([this, held = queue] { run(*held); });
  }
  queue->more.notify_one();
}

void Queues::trace(const Queue& queue, Work& work) {
  puone_trace_record record{};
  record.name = work.name;
  record.stream = reinterpret_cast<puone_stream>(const_cast<Queue*>(&queue));
  record.bytes = work.bytes;
  record.correlation = Correlation::next();
  record.kind = static_cast<int32_t>(work.kind);
  work.traced = &traced_.emplace_back(record);
  ++unfinished_;
}

void Queues::startTrace() {
  const Lock lock(mutex_);
  if (tracing_ != Tracing::kOff) fail(PUONE_INVALID_ARGUMENT, "tracing is on already");
  tracing_ = Tracing::kOn;
}

const std::vector<puone_trace_record>& Queues::stopTrace() {
  Lock lock(mutex_);
  if (tracing_ != Tracing::kOn) fail(PUONE_INVALID_ARGUMENT, "tracing is off");
  tracing_ = Tracing::kStopping;
  progress_.wait(lock, [&] { return unfinished_ == 0; });
  records_.clear();
  for (const puone_trace_record& record : std::exchange(traced_, {})) {
    if (record.end_ns != 0) records_.push_back(record); // else a failure before it had it skipped
  }
  tracing_ = Tracing::kOff;
  return records_;
}

void Queues::run(Queue& queue) {
  Lock lock(mutex_);
  while (true) {
    queue.more.wait(lock, [&] { return !queue.waiting.empty() || queue.ends; });
    if (queue.waiting.empty()) return;
    const Work work = std::move(queue.waiting.front());
    queue.waiting.pop_front();
    if (work.waits_for) progress_.wait(lock, [&] { return work.waits_for->complete; });
    if (work.body && !queue.failure) {
      lock.unlock();
      std::optional<Error> failure;
      running_work = work.name;
      const uint64_t begin = now();
      try {
        work.body();
      } catch (const Error& error) {
        failure = Error{error.status, std::string(work.name) + ": " + error.text, error.origin};
      } catch (const std::exception& error) {
        failure = Error{PUONE_INTERNAL, std::string(work.name) + ": " + error.what()};
      }
      running_work = nullptr;
      const uint64_t end = now();
      lock.lock();
      if (work.traced != nullptr) {
        work.traced->begin_ns = begin;
        work.traced->end_ns = end;
      }
      if (failure) {
        queue.failure = std::move(failure);
        queue.failed_at = queue.done + 1;
      }
    }
    ++queue.done;
    if (work.traced != nullptr) --unfinished_;
    if (work.completes) {
      work.completes->complete = true;
      work.completes->time = std::chrono::steady_clock::now();
    }
    progress_.notify_all();
  }
}

void Queues::waitUntil(Lock& lock, const Queue& queue, uint64_t done) {
  progress_.wait(lock, [&] { return queue.done >= done; });
}

void Queues::throwFailure(Queue& queue, uint64_t position) {
  if (!queue.failure || queue.failed_at > position) return;
  const Error failure = *std::exchange(queue.failure, std::nullopt);
  throw failure;
}

bool Queues::idle(Queue* queue) {
  const Lock lock(mutex_);
  throwFailure(*queue, queue->submitted);
  return queue->done == queue->submitted;
}

void Queues::finish(Queue* queue) {
  Lock lock(mutex_);
  const auto held = queues_.at(queue);
  const uint64_t position = held->submitted;
  waitUntil(lock, *held, position);
  throwFailure(*held, position);
}

void Queues::finishAll(bool report) {
  Lock lock(mutex_);
  std::vector<std::pair<std::shared_ptr<Queue>, uint64_t>> all;
  for (const auto& [key, queue] : queues_) all.emplace_back(queue, queue->submitted);
  for (const auto& [queue, position] : all) waitUntil(lock, *queue, position);
  if (!report) return;
  for (const auto& [queue, position] : all) throwFailure(*queue, position);
}

bool Queues::complete(const std::shared_ptr<Record>& record) {
  const Lock lock(mutex_);
  throwFailure(*record->queue, record->position);
  return record->complete;
}

void Queues::finish(const std::shared_ptr<Record>& record) {
  Lock lock(mutex_);
  progress_.wait(lock, [&] { return record->complete; });
  throwFailure(*record->queue, record->position);
}

const char* Queues::runningWork() {
  return running_work;
}

bool Queues::hasThreads() const {
  return std::any_of(queues_.begin(), queues_.end(), [](const auto& entry) {
    return entry.second->thread.joinable();
  });
}

} // namespace puone::host
