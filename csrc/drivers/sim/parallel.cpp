// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/sim/parallel.h"

#include <algorithm>
#include <chrono>
#include <system_error>

#include "drivers/sim/host_guard.h"
#include "drivers/sim/spin.h"

namespace puone::sim {
namespace {

/// Chunks per thread: enough to even out a core that is busy with something else.
constexpr int64_t kChunksPerThread = 8;
/// How long a helper looks for the next loop before it sleeps.
constexpr auto kSpin = std::chrono::microseconds(30);

} // namespace

void Parallel::Loop::runChunks() {
  for (;;) {
    const int64_t begin = next.fetch_add(chunk, std::memory_order_relaxed);
    if (begin >= n) return;
    body(context, begin, std::min(n, begin + chunk));
  }
}

void Parallel::run(int64_t n, int64_t grain, Body body, const void* context) {
  std::unique_lock alone(one_loop_, std::try_to_lock);
  if (!alone || helpers_wanted_ == 0) {
    body(context, 0, n);
    return;
  }
  const int64_t parts = kChunksPerThread * (helpers_wanted_ + 1);
  Loop loop{n, std::max(grain, (n + parts - 1) / parts), body, context, runningWork()};
  {
    const std::lock_guard guard(mutex_);
    if (helpers_.empty()) startHelpers();
    loop_ = &loop;
    posted_.fetch_add(1, std::memory_order_release);
  }
  loop_posted_.notify_all();
  loop.runChunks();
  // No helper may join any more; those inside still use `loop`.
  std::unique_lock lock(mutex_);
  loop_ = nullptr;
  helpers_left_.wait(lock, [this] { return inside_ == 0; });
}

void Parallel::startHelpers() {
  try {
    while (static_cast<int32_t>(helpers_.size()) < helpers_wanted_) {
      helpers_.emplace_back([this] { help(); });
    }
  } catch (const std::system_error&) {
    // Fewer helpers, or none: the caller does the work.
  }
}

void Parallel::help() {
  const SignalStack signal_stack;
  std::unique_lock lock(mutex_);
  uint64_t seen = 0;
  for (;;) {
    if (loop_ != nullptr && posted_.load(std::memory_order_relaxed) != seen) {
      seen = posted_.load(std::memory_order_relaxed);
      Loop& loop = *loop_;
      ++inside_;
      lock.unlock();
      {
        const Running running(loop.work);
        loop.runChunks();
      }
      lock.lock();
      if (--inside_ == 0) helpers_left_.notify_all();
      continue;
    }
    if (stopping_) return;
    seen = posted_.load(std::memory_order_relaxed);
    lock.unlock();
    const bool posted =
        spinUntil(kSpin, [&] { return posted_.load(std::memory_order_acquire) != seen; });
    lock.lock();
    if (posted) continue;
    loop_posted_.wait(
        lock, [&] { return stopping_ || posted_.load(std::memory_order_relaxed) != seen; });
  }
}

Parallel::~Parallel() {
  {
    const std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  loop_posted_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void Parallel::lock() {
  one_loop_.lock();
  mutex_.lock();
}

void Parallel::unlock() {
  mutex_.unlock();
  one_loop_.unlock();
}

} // namespace puone::sim
