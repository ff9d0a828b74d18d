// SPDX-License-Identifier: BSD-3-Clause
// A cudaStream_t with the record that work queued on it raises device errors in, and the pool of
// them.
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

#include "drivers/cuda/device_errors.h"

namespace puone::cuda {

class NativeStream {
 public:
  /// A new one, on the device that is current for CUDA.
  NativeStream(DeviceErrors& errors, int32_t priority);
  /// A stream with another owner.
  NativeStream(DeviceErrors& errors, cudaStream_t external);
  ~NativeStream();
  NativeStream(const NativeStream&) = delete;
  NativeStream& operator=(const NativeStream&) = delete;

  cudaStream_t get() const {
    return stream_;
  }
  int32_t priority() const {
    return priority_;
  }
  ErrorCell& cell() {
    return cell_;
  }
  bool isExternal() const {
    return is_external_;
  }

  /// Something with a cell of its own (a graph) was launched here; it lives until that is done.
  void watch(std::shared_ptr<ErrorCell> cell);
  /// Work queued until the ticket `until` is done: lets go of what was watched and has not failed.
  void release(Ticket until);

  /// The oldest failure not reported yet of the work queued until `until`, which is done.
  std::optional<Failure> failure(Ticket until) const;

 private:
  struct Watched {
    std::shared_ptr<ErrorCell> cell;
    Ticket first; // when it was launched first,
    Ticket last;  // and last
  };

  const bool is_external_;
  const int32_t priority_;
  ErrorCell cell_;
  cudaStream_t stream_ = nullptr;
  mutable std::mutex mutex_;
  std::vector<Watched> watched_;
};

/// The native streams of one device. They live as long as the pool, those of others as far as their
/// device errors go. Thread-safe.
class StreamPool {
 public:
  explicit StreamPool(DeviceErrors& errors) : errors_(errors) {}

  /// A stream without work. The device is current for CUDA.
  NativeStream& take(int32_t priority);
  /// The one that is `native`, be it the pool's own; a new one over it if there is none.
  NativeStream& wrap(cudaStream_t native);
  /// Gives back what take() or wrap() gave. What was taken twice is used again after both.
  void give(NativeStream& stream);

  /// The oldest failure of all streams, also of those given back; and release() of all.
  std::optional<Failure> failure(Ticket until) const;
  void release(Ticket until);

  /// Calls f(stream) for every native stream that is known to exist: all own ones, and those of
  /// other owners that are in use.
  template <class F>
  void forEach(const F& f) const {
    const std::lock_guard guard(mutex_);
    for (const auto& stream : all_) {
      if (!stream->isExternal() || users_.contains(stream.get())) f(*stream);
    }
  }

 private:
  DeviceErrors& errors_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<NativeStream>> all_;
  std::map<NativeStream*, int32_t> users_;               // how often each is given out
  std::map<int32_t, std::deque<NativeStream*>> resting_; // by priority, longest first
};

} // namespace puone::cuda
