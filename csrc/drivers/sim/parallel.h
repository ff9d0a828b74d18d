// SPDX-License-Identifier: BSD-3-Clause
// Spreads one large copy, fill or kernel over the host's cores.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace puone::sim {

class Parallel {
 public:
  using Body = void (*)(const void* context, int64_t begin, int64_t end);

  /// Starts no thread: they come with the first loop that is worth it.
  explicit Parallel(int32_t cores) : helpers_wanted_(cores - 1) {}
  ~Parallel();
  Parallel(const Parallel&) = delete;
  Parallel& operator=(const Parallel&) = delete;

  /// body(context, begin, end) over disjoint ranges that cover [0, n), on the calling thread and on
  /// idle helpers. One loop at a time is spread; one that comes meanwhile runs on its caller alone,
  /// since the cores are busy anyway. `body` must not throw.
  void run(int64_t n, int64_t grain, Body body, const void* context);

  /// For a thread that waits: whether there is a loop it has not been in (`seen`: the last one it
  /// was in, at first 0), and joining that loop.
  bool canAssist(uint64_t seen) const {
    return spread_.load(std::memory_order_relaxed) &&
           posted_.load(std::memory_order_acquire) != seen;
  }
  void assist(uint64_t& seen);

  /// Threads that exist now.
  size_t threads() const {
    return helpers_.size();
  }

  /// fork(): hold the locks across it.
  void lock();
  void unlock();

 private:
  /// The share of one thread. Whoever is done with its own takes chunks from the others'.
  struct alignas(64) Share {
    std::atomic<int64_t> next;
    int64_t end;
  };
  struct Loop {
    Loop(int64_t n, int64_t grain, size_t threads, Body body, const void* context);
    /// A thread keeps its place from loop to loop, and with it the memory its caches hold.
    void runChunks(size_t own);

    std::vector<Share> shares;
    int64_t chunk;
    const Body body;
    const void* const context;
    const char* const work; // for the fault message of a helper
  };

  void startHelpers();
  void join(std::unique_lock<std::mutex>& lock, size_t own);
  void help(size_t own);

  const int32_t helpers_wanted_;
  std::mutex one_loop_; // held by the caller whose loop is spread
  std::mutex mutex_;    // of all below
  std::condition_variable loop_posted_;
  std::condition_variable helpers_left_;
  std::atomic<uint64_t> posted_{0}; // loops posted so far; helpers spin on it for a while
  std::atomic<bool> spread_{false}; // loop_ is set
  Loop* loop_ = nullptr;            // the loop helpers may join
  std::atomic<int32_t> inside_{0};  // helpers in it; its poster spins on it for a while
  bool stopping_ = false;
  std::vector<std::thread> helpers_;
};

} // namespace puone::sim
