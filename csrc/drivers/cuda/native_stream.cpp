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

NativeStream::NativeStream(Faults& faults, int32_t priority) : priority_(priority), cell_(faults) {
  // Non-blocking: no order with the legacy default stream, which others in the process may use.
  check(
      "cudaStreamCreateWithPriority",
      cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, priority));
}

NativeStream::~NativeStream() {
  note("cudaStreamDestroy", cudaStreamDestroy(stream_));
}

void NativeStream::watch(std::shared_ptr<FaultCell> cell) {
  const Ticket now = cell->faults().draw();
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
    const Ticket now = faults_.latest();
    if (isDone("cudaStreamQuery", cudaStreamQuery(stream->get())) && !stream->failure(now)) {
      stream->release(now);
      return *stream;
    }
    resting.push_back(stream);
  }
  all_.push_back(std::make_unique<NativeStream>(faults_, priority));
  return *all_.back();
}

void StreamPool::give(NativeStream& stream) {
  const std::lock_guard guard(mutex_);
  resting_[stream.priority()].push_back(&stream);
}

std::optional<Failure> StreamPool::failure(Ticket until) const {
  std::optional<Failure> oldest;
  forEach([&](const NativeStream& stream) { keepOldest(oldest, stream.failure(until)); });
  return oldest;
}

void StreamPool::release(Ticket until) {
  forEach([=](NativeStream& stream) { stream.release(until); });
}

} // namespace puone::cuda
