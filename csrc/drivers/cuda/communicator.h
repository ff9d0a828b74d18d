// SPDX-License-Identifier: BSD-3-Clause
// What a puone_communicator points to: a communicator of NCCL that does not block, so that a wait
// for ranks that do not come can be given up.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>

#include "drivers/cuda/nccl.h"
#include "hal/collective.h"

namespace puone::cuda {

/// Throws an Error if there is no library.
const Nccl& requireNccl();

puone_collective_id newCollectiveId();

/// Thread-safe.
class Communicator {
 public:
  /// Waits for the other ranks. The device is current for CUDA.
  Communicator(
      int32_t device,
      const puone_collective_id& id,
      int32_t rank,
      int32_t size,
      std::chrono::milliseconds timeout);
  /// Leaves the library's communicator to the process, unless it was closed or aborted.
  ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int32_t device() const {
    return device_;
  }

  /// One call that queues work: queue(nccl, communicator) returns its status. In a group the work
  /// is queued by endGroup(), otherwise before this returns.
  template <class Queue>
  void call(const char* name, const Queue& queue) {
    if (inGroup()) {
      requireAlive();
      requireBegun(name, queue(state_->nccl, state_->native));
    } else {
      settle(name, locked(queue));
    }
  }

  /// Calls of this thread until endGroup(). Nobody else calls the library for this communicator
  /// meanwhile.
  void beginGroup();
  void endGroup();
  bool inGroup() const {
    return group_.owns_lock();
  }
  /// The stream of the group's calls, set by the first of them.
  puone_stream group_stream = nullptr;

  /// Ends what runs, on a thread of its own: the library waits for it.
  void abort();
  /// Throws what the library knows of.
  void check();
  /// Sends what is on its way, then gives everything back.
  void close();

 private:
  /// Shared with the thread that aborts.
  struct State {
    explicit State(const Nccl& functions) : nccl(functions) {}
    const Nccl& nccl;
    std::mutex mutex; // held during each call of the library
    NcclCommunicator native = nullptr;
    std::atomic<bool> ended{false}; // aborted or closed
  };

  template <class Body>
  NcclStatus locked(const Body& body) const {
    requireAlive(); // not to wait for the thread that aborts
    const std::lock_guard guard(state_->mutex);
    requireAlive();
    return body(state_->nccl, state_->native);
  }
  [[noreturn]] void giveUp(int32_t size, std::chrono::milliseconds timeout);
  void requireAlive() const;
  void requireBegun(const char* name, NcclStatus status) const;
  NcclStatus progress() const;
  void settle(const char* name, NcclStatus status) const;

  const int32_t device_;
  const std::shared_ptr<State> state_;
  std::unique_lock<std::mutex> group_; // of the state's mutex
};

} // namespace puone::cuda
