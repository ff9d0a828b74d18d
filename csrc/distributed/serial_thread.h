// SPDX-License-Identifier: BSD-3-Clause
// A thread that does one thing after the other. It starts with the first task and is never joined:
// it keeps what it uses alive, and is waited for by drain().
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace puone::distributed {

class SerialThread {
 public:
  SerialThread() : state_(std::make_shared<State>()) {}
  // The thread finishes what was pushed, without being waited for.
  ~SerialThread();
  SerialThread(const SerialThread&) = delete;
  SerialThread& operator=(const SerialThread&) = delete;

  // Tasks must not throw.
  void push(std::function<void()> task);

  // Waits until everything that was pushed is done; false if that takes longer than `timeout`.
  bool drain(std::chrono::milliseconds timeout);

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> tasks; // the first one is being run
    bool started = false;
    bool ended = false;
  };

  static void serve(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
};

} // namespace puone::distributed
