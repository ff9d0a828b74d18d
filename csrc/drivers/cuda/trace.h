// SPDX-License-Identifier: BSD-3-Clause
// What the device did, and when: timing events around each piece of work while tracing is on.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "drivers/cuda/device.h"
#include "hal/hal.h"

namespace puone::cuda {

class Tracer {
 public:
  /// A piece of work, and where it is queued.
  struct Work {
    puone_trace_kind kind;
    const char* name; // static
    uint64_t bytes;
    puone_stream handle;
    Device& device;
    cudaStream_t stream;
  };

  void start();
  /// Waits for the work recorded. The records live until the next start().
  const std::vector<puone_trace_record>& stop();

  /// Calls queue(), which queues `work` on its stream; its device is current for CUDA. While
  /// tracing is off that costs one load.
  template <class Queue>
  void record(const Work& work, const Queue& queue) {
    if (!on_.load(std::memory_order_relaxed)) [[likely]] {
      queue();
      return;
    }
    Traced traced = begin(work);
    queue();
    end(std::move(traced));
  }

 private:
  /// A point in time that is known on the device and on the host.
  struct Anchor {
    NativeEvent event;
    uint64_t ns;
  };
  struct Traced {
    puone_trace_record record; // without its times
    NativeEvent begin;
    NativeEvent end;
    cudaStream_t stream;
  };

  Traced begin(const Work& work);
  void end(Traced traced);
  void anchor(Device& device);
  puone_trace_record resolved(const Traced& traced) const;

  std::atomic<bool> on_{false};
  std::mutex mutex_;
  std::map<int32_t, Anchor> anchors_; // by device
  std::vector<Traced> traced_;
  std::vector<puone_trace_record> records_;
};

} // namespace puone::cuda
