// SPDX-License-Identifier: BSD-3-Clause
// The life cycle of a driver: init() creates it, shutdown() destroys it, and a forked child, which
// lacks the driver's threads, cannot use it.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>

#include "drivers/common/error.h"

namespace puone {

/// `Traits` describes a driver:
///
///     using Driver = ...;
///     static constexpr Description kDescription; // for Entries, in entries.h
///     static constexpr const char* kBadFork;  // the text of every failure in such a child
///     static Driver* create();
///     static const char* runningWork();       // the work that the calling thread runs and that
///                                             // must not call an entry; NULL if none
///     static void beforeFork(Driver&);        // lock what must be consistent in the child
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

  /// Waits for calls that have begun on other threads; later calls find no driver.
  static void end() {
    // The work to wait for is the parent's, and so is the memory.
    if (bad_fork_.load(std::memory_order_relaxed)) return;
    if (const char* work = Traits::runningWork()) { // it would wait for itself
      fail(PUONE_INTERNAL, "called from within %s", work);
    }
    const std::lock_guard guard(mutex_);
    Driver* driver = driver_.exchange(nullptr, std::memory_order_seq_cst);
    for (const Inside& part : inside_) {
      while (part.calls.load(std::memory_order_seq_cst) > 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
    }
    delete driver;
  }

  /// The driver between begin() and end(), else NULL.
  static Driver* current() {
    return driver_.load(std::memory_order_acquire);
  }

  /// One call of an entry: the driver stays while it lasts.
  class Call {
   public:
    Call() : inside_(ownPart()) {
      inside_.fetch_add(1, std::memory_order_seq_cst);
      try {
        checkFork();
        driver_ = Life::driver_.load(std::memory_order_seq_cst);
        if (driver_ == nullptr) {
          fail(PUONE_INTERNAL, "init() has not been called, or shutdown() has");
        }
        if (const char* work = Traits::runningWork()) {
          fail(PUONE_INTERNAL, "called from within %s", work);
        }
      } catch (...) {
        inside_.fetch_sub(1, std::memory_order_release);
        throw;
      }
    }
    ~Call() {
      inside_.fetch_sub(1, std::memory_order_release);
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    Driver& driver() const {
      return *driver_;
    }

   private:
    std::atomic<int32_t>& inside_;
    Driver* driver_ = nullptr;
  };

 private:
  /// The number of calls that have begun and not ended. Threads use different counters on separate
  /// cache lines: one counter would move from core to core at every call.
  struct alignas(64) Inside {
    std::atomic<int32_t> calls{0};
  };

  static std::atomic<int32_t>& ownPart() {
    // By a hash of the thread, which takes less time than a thread_local in a library.
    const uint64_t mixed = uint64_t{pthread_self()} * 0x9e3779b97f4a7c15u;
    return inside_[mixed >> 60].calls;
  }

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
    for (Inside& part : inside_) part.calls.store(0, std::memory_order_relaxed); // the parent's
    const Driver* driver = current();
    if (driver != nullptr && !Traits::survivesFork(*driver)) {
      bad_fork_.store(true, std::memory_order_relaxed);
    }
    afterFork();
  }

  static constexpr size_t kParts = 16; // 4 bits of a hash
  static inline std::array<Inside, kParts> inside_;
  // Not destroyed at process exit, when threads may still run its work and the platform may be
  // gone.
  static inline std::atomic<Driver*> driver_{nullptr};
  static inline std::mutex mutex_; // held by begin() and end()
  static inline std::atomic<bool> bad_fork_{false};
};

} // namespace puone
