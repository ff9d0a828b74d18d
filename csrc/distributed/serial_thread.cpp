// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/serial_thread.h"

#include <thread>
#include <utility>

namespace puone::distributed {

SerialThread::~SerialThread() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->ended = true;
  }
  state_->changed.notify_all();
}

void SerialThread::push(std::function<void()> task) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->tasks.push_back(std::move(task));
    if (!std::exchange(state_->started, true)) {
      std::thread([state = state_] { serve(state); }).detach();
    }
  }
  state_->changed.notify_all();
}

bool SerialThread::drain(std::chrono::milliseconds timeout) {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, timeout, [this] { return state_->tasks.empty(); });
}

void SerialThread::serve(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  for (;;) {
    state->changed.wait(lock, [&] { return state->ended || !state->tasks.empty(); });
    if (state->tasks.empty()) return;
    std::function<void()> task = std::move(state->tasks.front());
    lock.unlock();
    task();
    task = nullptr; // what it holds goes before drain() returns
    lock.lock();
    state->tasks.pop_front();
    if (state->tasks.empty()) state->changed.notify_all();
  }
}

} // namespace puone::distributed
