// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/cuda/native_stream.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "drivers/cuda/status.h"

namespace puone::cuda {
namespace {

void keepOldest(std::optional<Failure>& oldest, std::optional<Failure> next) {
  if (next && (!oldest || isBefore(next->ticket, oldest->ticket))) oldest = std::move(next);
}

} // namespace

NativeStream::NativeStream(DeviceErrors& errors, cudaStream_t external)
    : is_external_(true), priority_(0), cell_(errors), stream_(external) {}

NativeStream::NativeStream(DeviceErrors& errors, int32_t priority)
    : is_external_(false), priority_(priority), cell_(errors) {
  // Non-blocking: no order with the legacy default stream, which others in the process may use.
  check(
      "cudaStreamCreateWithPriority",
      cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, priority));
}

NativeStream::~NativeStream() {
  if (!is_external_) note("cudaStreamDestroy", cudaStreamDestroy(stream_));
}

void NativeStream::watch(std::shared_ptr<ErrorCell> cell) {
  const Ticket now = cell->errors().draw();
  const std::lock_guard guard(mutex_);
  for (Watched& watched : watched_) {
    if (watched.cell == cell) {
      watched.last = now;
      return;
    }
  }
  watched_.push_back({std::move(cell), now, now});
}

void NativeStream::release(Ticket until) {
  std::vector<Watched> done; // whose destruction needs no lock
  const std::lock_guard guard(mutex_);
  const auto first = std::stable_partition(watched_.begin(), watched_.end(), [=](const auto& w) {
    return w.cell->isRaised() || isAfter(w.last, until);
  });
  std::move(first, watched_.end(), std::back_inserter(done));
  watched_.erase(first, watched_.end());
}

std::optional<Failure> NativeStream::failure(Ticket until) const {
  std::optional<Failure> oldest = cell_.read();
  if (oldest && isAfter(oldest->ticket, until)) oldest.reset();
  const std::lock_guard guard(mutex_);
  for (const Watched& watched : watched_) {
    if (isAfter(watched.first, until)) continue;
    std::optional<Failure> failure = watched.cell->read();
    if (failure) failure->ticket = watched.first;
    keepOldest(oldest, std::move(failure));
  }
  return oldest;
}

NativeStream& StreamPool::take(int32_t priority) {
  const std::lock_guard guard(mutex_);
  std::deque<NativeStream*>& resting = resting_[priority];
  if (!resting.empty()) {
    NativeStream* stream = resting.front();
    resting.pop_front();
    const Ticket now = errors_.latest();
    if (isDone("cudaStreamQuery", cudaStreamQuery(stream->get())) && !stream->failure(now)) {
      stream->release(now);
      ++users_[stream];
      return *stream;
    }
    resting.push_back(stream);
  }
  all_.push_back(std::make_unique<NativeStream>(errors_, priority));
  ++users_[all_.back().get()];
  return *all_.back();
}

NativeStream& StreamPool::wrap(cudaStream_t native) {
  const std::lock_guard guard(mutex_);
  const auto found = std::find_if(
      all_.begin(), all_.end(), [=](const auto& stream) { return stream->get() == native; });
  NativeStream* stream = found != all_.end() ? found->get() : nullptr;
  if (stream == nullptr) {
    all_.push_back(std::make_unique<NativeStream>(errors_, native));
    stream = all_.back().get();
  }
  ++users_[stream];
  return *stream;
}

void StreamPool::give(NativeStream& stream) {
  const std::lock_guard guard(mutex_);
  if (--users_[&stream] > 0) return;
  users_.erase(&stream);
  if (!stream.isExternal()) resting_[stream.priority()].push_back(&stream);
}

std::optional<Failure> StreamPool::failure(Ticket until) const {
  std::optional<Failure> oldest;
  const std::lock_guard guard(mutex_);
  for (const auto& stream : all_) keepOldest(oldest, stream->failure(until));
  return oldest;
}

void StreamPool::release(Ticket until) {
  const std::lock_guard guard(mutex_);
  for (const auto& stream : all_) stream->release(until);
}

} // namespace puone::cuda
