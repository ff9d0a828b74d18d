// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/sim/parallel.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>
#include <system_error>

#include "drivers/sim/host_guard.h"
#include "drivers/sim/spin.h"

namespace puone::sim {
namespace {

/// Chunks per thread: enough to balance the load if a core is busy with other work.
constexpr int64_t kChunksPerThread = 8;
/// How long a helper polls for the next loop before it sleeps.
constexpr auto kSpin = std::chrono::microseconds(30);

} // namespace

Parallel::Loop::Loop(int64_t n, int64_t grain, size_t threads, Body b, const void* c)
    : shares(threads), body(b), context(c), work(runningWork()) {
  const auto count = static_cast<int64_t>(threads);
  chunk = std::max(grain, (n + count * kChunksPerThread - 1) / (count * kChunksPerThread));
  const int64_t length = (n + count - 1) / count;
  for (int64_t i = 0; i < count; ++i) {
    shares[i].next = std::min(n, i * length);
    shares[i].end = std::min(n, (i + 1) * length);
  }
}

void Parallel::Loop::runChunks(size_t own) noexcept {
  try {
    for (size_t i = 0; i < shares.size(); ++i) {
      Share& share = shares[(own + i) % shares.size()];
      for (;;) {
        const int64_t begin = share.next.fetch_add(chunk, std::memory_order_relaxed);
        if (begin >= share.end) break;
        body(context, begin, std::min(share.end, begin + chunk));
      }
    }
  } catch (...) {
    stop();
  }
}

void Parallel::Loop::stop() noexcept {
  if (!stopped.exchange(true)) error = std::current_exception();
  for (Share& share : shares) share.next.store(share.end, std::memory_order_relaxed);
}

void Parallel::Loop::help(size_t own) {
  std::optional<Running> running;
  try {
    running.emplace(work);
  } catch (const std::bad_alloc&) {
    return; // the other threads take this one's share
  }
  runChunks(own);
}

void Parallel::run(int64_t n, int64_t grain, Body body, const void* context) {
  std::unique_lock alone(one_loop_, std::try_to_lock);
  if (!alone || helpers_wanted_ == 0) {
    body(context, 0, n);
    return;
  }
  Loop loop(n, grain, static_cast<size_t>(helpers_wanted_) + 1, body, context);
  {
    const std::lock_guard guard(mutex_);
    if (helpers_.empty()) startHelpers();
    loop_ = &loop;
    spread_.store(true, std::memory_order_relaxed);
    posted_.fetch_add(1, std::memory_order_release);
  }
  loop_posted_.notify_all();
  loop.runChunks(0);
  // No helper may join any more; helpers that have joined still use `loop`.
  std::unique_lock lock(mutex_);
  loop_ = nullptr;
  spread_.store(false, std::memory_order_relaxed);
  lock.unlock();
  const auto left = [this] { return inside_.load(std::memory_order_acquire) == 0; };
  if (!spinUntil(kSpin, left)) {
    lock.lock();
    helpers_left_.wait(lock, left);
  }
  if (loop.error) std::rethrow_exception(loop.error);
}

void Parallel::startHelpers() {
  try {
    while (static_cast<int32_t>(helpers_.size()) < helpers_wanted_) {
      helpers_.emplace_back([this, own = helpers_.size() + 1] { help(own); });
    }
  } catch (const std::system_error&) {
    // With fewer helpers, or none, the caller does the work.
  }
}

void Parallel::help(size_t own) {
  const SignalStack signal_stack;
  std::unique_lock lock(mutex_);
  uint64_t seen = 0;
  const auto posted = [&] { return posted_.load(std::memory_order_acquire) != seen; };
  while (!stopping_) {
    if (posted()) {
      seen = posted_.load(std::memory_order_relaxed);
      if (loop_ != nullptr) join(lock, own);
      continue;
    }
    lock.unlock();
    const bool soon = spinUntil(kSpin, posted);
    lock.lock();
    if (!soon) loop_posted_.wait(lock, [&] { return stopping_ || posted(); });
  }
}

void Parallel::assist(uint64_t& seen) {
  std::unique_lock lock(mutex_);
  seen = posted_.load(std::memory_order_relaxed);
  if (loop_ != nullptr) join(lock, loop_->shares.size() - 1);
}

/// Joins the current loop. Its caller waits for all threads in it.
void Parallel::join(std::unique_lock<std::mutex>& lock, size_t own) {
  Loop& loop = *loop_;
  inside_.fetch_add(1, std::memory_order_relaxed);
  lock.unlock();
  loop.help(own);
  lock.lock();
  if (inside_.fetch_sub(1, std::memory_order_release) == 1) helpers_left_.notify_all();
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
