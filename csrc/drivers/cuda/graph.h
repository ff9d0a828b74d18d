// SPDX-License-Identifier: BSD-3-Clause
// Work captured from streams, to be launched again and again.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "drivers/cuda/device_errors.h"
#include "drivers/cuda/host_call.h"

namespace puone::cuda {

struct Graph {
  Graph(int32_t d, DeviceErrors& errors) : device(d), cell(errors) {}
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// Keeps what the graph calls as long as the graph lives.
  HostCall& keep(std::unique_ptr<HostCall> call);
  void keep(std::shared_ptr<const void> module);
  /// The graph is destroyed, though launches of it may be queued.
  void dropModules();

  const int32_t device;
  ErrorCell cell;   // the device errors of its kernels, whatever stream it is launched on
  std::mutex mutex; // guards what follows
  std::vector<std::unique_ptr<HostCall>> calls;
  std::vector<std::shared_ptr<const void>> modules; // of its kernels
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr; // once instantiated
};

/// The current captures. Thread-safe.
///
/// They are of CUDA's relaxed mode: what other threads and streams do does not end them.
class Captures {
 public:
  void begin(cudaStream_t stream, int32_t device, DeviceErrors& errors);
  std::shared_ptr<Graph> end(cudaStream_t stream);

  /// The graph that work queued on the stream becomes part of; NULL if it is not being captured.
  Graph* of(cudaStream_t stream) {
    return active_.load(std::memory_order_relaxed) == 0 ? nullptr : find(stream);
  }
  /// Whether any stream is being captured.
  bool any() const {
    return active_.load(std::memory_order_relaxed) != 0;
  }
  /// Whether the stream is part of a capture, be it a failed one.
  static bool isPart(cudaStream_t stream);
  /// Throws Error(INVALID_ARGUMENT) if the stream is being captured: `what` cannot be.
  void refuse(cudaStream_t stream, const char* what);

 private:
  struct Capture {
    cudaStream_t origin;
    std::shared_ptr<Graph> graph;
  };

  Graph* find(cudaStream_t stream);

  std::atomic<int32_t> active_{0};
  std::mutex mutex_;
  std::map<unsigned long long, Capture> captures_; // by CUDA's number of the capture
};

} // namespace puone::cuda
