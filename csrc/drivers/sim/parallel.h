// SPDX-License-Identifier: BSD-3-Clause
// Spreads one large copy, fill or kernel over the host's cores.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace puone::sim {

class Parallel {
 public:
  using Body = void (*)(const void* context, int64_t begin, int64_t end);

  /// Starts no thread: the first large loop starts them.
  explicit Parallel(int32_t cores) : helpers_wanted_(cores - 1) {}
  ~Parallel();
  Parallel(const Parallel&) = delete;
  Parallel& operator=(const Parallel&) = delete;

  /// Calls body(context, begin, end) for disjoint ranges that cover [0, n), on the calling thread
  /// and on idle helpers. One loop is spread at a time; another one runs only on its caller
  /// meanwhile, because the cores are busy anyway. What `body` throws first is thrown here, once no
  /// thread is in it any more; chunks that were not begun by then are left out.
  void run(int64_t n, int64_t grain, Body body, const void* context);

  /// For a waiting thread: whether there is a loop that it has not joined yet, and joining that
  /// loop. `seen`: the last loop that it joined, initially 0.
  bool canAssist(uint64_t seen) const {
    return spread_.load(std::memory_order_relaxed) &&
           posted_.load(std::memory_order_acquire) != seen;
  }
  void assist(uint64_t& seen);

  /// Current number of threads.
  size_t threads() const {
    return helpers_.size();
  }

  /// fork(): hold the locks across it.
  void lock();
  void unlock();

 private:
  /// The share of one thread. A thread that has finished its own share takes chunks of others.
  struct alignas(64) Share {
    std::atomic<int64_t> next;
    int64_t end;
  };
  struct Loop {
    Loop(int64_t n, int64_t grain, size_t threads, Body body, const void* context);
    /// A thread has the same share in every loop, so that its caches stay useful.
    void runChunks(size_t own) noexcept;
    /// runChunks() on another thread than the loop's caller, under the name of its work.
    void help(size_t own);
    /// Keeps the first exception of a body, the one in flight, and leaves no chunk to begin.
    void stop() noexcept;

    std::vector<Share> shares;
    int64_t chunk;
    const Body body;
    const void* const context;
    const char* const work; // for the message about a segmentation fault in a helper
    std::atomic<bool> stopped{false};
    std::exception_ptr error; // set by the thread that set `stopped`
  };

  void startHelpers();
  void join(std::unique_lock<std::mutex>& lock, size_t own);
  void help(size_t own);

  const int32_t helpers_wanted_;
  std::mutex one_loop_; // held by the caller whose loop is spread
  std::mutex mutex_;    // guards the members below
  std::condition_variable loop_posted_;
  std::condition_variable helpers_left_;
  std::atomic<uint64_t> posted_{0}; // number of posted loops; helpers spin on it for a while
  std::atomic<bool> spread_{false}; // loop_ is set
  Loop* loop_ = nullptr;            // the loop that helpers may join
  std::atomic<int32_t> inside_{0};  // helpers in the loop; its caller spins on it for a while
  bool stopping_ = false;
  std::vector<std::thread> helpers_;
};

} // namespace puone::sim
