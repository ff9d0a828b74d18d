// SPDX-License-Identifier: BSD-3-Clause
// One call of a process group while it is under way: what it is, how far it is, and the tickets
// that streams wait for. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "distributed/failure.h"
#include "distributed/ticket.h"

namespace puone::distributed {

class Operation {
 public:
  enum class State {
    kWaitsForDevice,
    kExchanges,
    kDone,
    kFailed
  };

  // `text`: "all_reduce of 4 x Float", for messages. `parts`: how many tickets it has.
  Operation(uint64_t number, std::string text, c10::DeviceIndex device, size_t parts);

  uint64_t number() const noexcept {
    return number_;
  }
  const std::string& text() const noexcept {
    return text_;
  }
  c10::DeviceIndex device() const noexcept {
    return device_;
  }
  std::chrono::steady_clock::time_point begun() const noexcept {
    return begun_;
  }
  const std::shared_ptr<Ticket>& ticket(size_t part) const {
    return tickets_.at(part);
  }

  State state() const noexcept {
    return state_.load(std::memory_order_acquire);
  }
  // It is done or has failed.
  bool ended() const noexcept;
  // The device has reached it: it is up to the other ranks now.
  void exchanges() noexcept;

  // A part is complete on the host.
  void finishPart(size_t part);

  // Nothing happens if the operation has ended already. Its tickets are kept: what streams would do
  // next may be what another operation sends, which has to fail before.
  void fail(const std::shared_ptr<const Failure>& failure);
  // Gives all tickets.
  void release() noexcept;
  // NULL unless it has failed.
  std::shared_ptr<const Failure> failure() const;

  // Blocks until it is done or has failed; false if that takes longer than `timeout`.
  bool waitFor(std::chrono::milliseconds timeout) const;
  void wait() const;

  // "#12 all_reduce of 4 x Float, exchanges data, 1.5 s": a line of a table of pending work.
  std::string describe() const;

 private:
  const uint64_t number_;
  const std::string text_;
  const c10::DeviceIndex device_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  const std::vector<std::shared_ptr<Ticket>> tickets_;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::atomic<State> state_ = State::kWaitsForDevice; // written with the lock
  size_t unfinished_;
  std::shared_ptr<const Failure> failure_;
};

} // namespace puone::distributed
