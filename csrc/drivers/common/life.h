// SPDX-License-Identifier: BSD-3-Clause
// A driver's life in the process: made by init(), ended by shutdown(), of no use in a forked child
// that misses what it needs.
#pragma once

#include <pthread.h>

#include <atomic>
#include <mutex>

#include "drivers/common/error.h"

namespace puone {

/// `Traits` is what a driver says of itself:
///
///     using Driver = ...;
///     static constexpr const char* kName;     // as describe() gives it
///     static constexpr const char* kBadFork;  // the text of every failure in a useless child
///     static Driver* create();
///     static const char* runningWork();       // of the calling thread, that may call no entry; or
///                                             // NULL
///     static void beforeFork(Driver&);        // hold whatever must be whole in the child
///     static void afterFork(Driver&);         // in both processes
///     static bool survivesFork(const Driver&);
///     static std::span<const Extension> extensions(); // for Entries, in entries.h
template <class Traits>
class Life {
  using Driver = typename Traits::Driver;

 public:
  static void begin() {
    checkFork();
    const std::lock_guard guard(mutex_);
    if (current() != nullptr) return;
    static const bool watches_forks = pthread_atfork(beforeFork, afterFork, afterForkInChild) == 0;
    if (!watches_forks) fail(PUONE_INTERNAL, "pthread_atfork failed");
    driver_.store(Traits::create(), std::memory_order_release);
  }

  static void end() {
    // The work to wait for is the parent's, and so is the memory.
    if (bad_fork_.load(std::memory_order_relaxed)) return;
    const std::lock_guard guard(mutex_);
    delete driver_.exchange(nullptr, std::memory_order_acq_rel);
  }

  /// The driver between begin() and end(), else NULL.
  static Driver* current() {
    return driver_.load(std::memory_order_acquire);
  }

  /// The driver, for an entry that may use it here and now.
  static Driver& driver() {
    checkFork();
    Driver* driver = current();
    if (driver == nullptr) fail(PUONE_INTERNAL, "init() has not been called, or shutdown() has");
    if (const char* work = Traits::runningWork()) {
      fail(PUONE_INTERNAL, "called from within %s", work);
    }
    return *driver;
  }

 private:
  static void checkFork() {
    if (bad_fork_.load(std::memory_order_relaxed)) fail(PUONE_INTERNAL, "%s", Traits::kBadFork);
  }

  static void beforeFork() {
    mutex_.lock();
    if (Driver* driver = current()) Traits::beforeFork(*driver);
  }

  static void afterFork() {
    if (Driver* driver = current()) Traits::afterFork(*driver);
    mutex_.unlock();
  }

  static void afterForkInChild() {
    const Driver* driver = current();
    if (driver != nullptr && !Traits::survivesFork(*driver)) {
      bad_fork_.store(true, std::memory_order_relaxed);
    }
    afterFork();
  }

  // Never destroyed at process exit, when threads may still run its work, or the platform be gone.
  static inline std::atomic<Driver*> driver_{nullptr};
  static inline std::mutex mutex_; // of begin() and end()
  static inline std::atomic<bool> bad_fork_{false};
};

} // namespace puone
