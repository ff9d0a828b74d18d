// SPDX-License-Identifier: BSD-3-Clause
// A cudaStream_t with the records that work queued on it may raise faults in, and the pool of them.
//
// A native stream costs far more to create than to keep, so a destroyed stream gives its own back.
// It is used again, by a stream of the same priority, once the work queued on it is done and its
// failures have been reported.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "drivers/cuda/faults.h"

namespace puone::cuda {

class NativeStream {
 public:
  /// On the device that is current for CUDA.
  NativeStream(Faults& faults, int32_t priority);
  ~NativeStream();
  NativeStream(const NativeStream&) = delete;
  NativeStream& operator=(const NativeStream&) = delete;

  cudaStream_t get() const {
    return stream_;
  }
  int32_t priority() const {
    return priority_;
  }
  FaultCell& cell() {
    return cell_;
  }

  /// Something with a cell of its own (a graph) was launched here; it lives until that is done.
  void watch(std::shared_ptr<FaultCell> cell);
  /// Work queued until the ticket `until` is done: lets go of what was watched and has not failed.
  void release(Ticket until);

  /// The oldest failure not reported yet of the work queued until `until`, which is done.
  std::optional<Failure> failure(Ticket until) const;

 private:
  struct Watched {
    std::shared_ptr<FaultCell> cell;
    Ticket first; // when it was launched first,
    Ticket last;  // and last
  };

  const int32_t priority_;
  FaultCell cell_;
  cudaStream_t stream_ = nullptr;
  mutable std::mutex mutex_;
  std::vector<Watched> watched_;
};

/// The native streams of one device. They live as long as the pool. Thread-safe.
class StreamPool {
 public:
  explicit StreamPool(Faults& faults) : faults_(faults) {}

  /// A stream without work. The device is current for CUDA.
  NativeStream& take(int32_t priority);
  void give(NativeStream& stream);

  /// The oldest failure of all streams, also of those given back; and release() of all.
  std::optional<Failure> failure(Ticket until) const;
  void release(Ticket until);

  /// Calls f(stream) for every native stream.
  template <class F>
  void forEach(const F& f) const {
    const std::lock_guard guard(mutex_);
    for (const auto& stream : all_) f(*stream);
  }

 private:
  Faults& faults_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<NativeStream>> all_;
  std::map<int32_t, std::deque<NativeStream*>> resting_; // by priority, longest first
};

} // namespace puone::cuda
