// SPDX-License-Identifier: BSD-3-Clause
// The state behind the C functions, and the rules that hold for each of them. One lock guards it;
// work runs without the lock, on a thread per stream that starts with the stream's first work.
#pragma once

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "handles.h"
#include "memory.h"
#include "options.h"
#include "stream.h"

namespace puone::standin {

/// What a C function throws to return an error.
struct Refusal {
  cudaError_t error;
};
[[noreturn]] void refuse(cudaError_t error);

class Runtime {
 public:
  using Lock = std::unique_lock<std::mutex>;

  explicit Runtime(Options chosen);
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // ---- devices ----
  struct Device {
    cudaError_t sticky = cudaSuccess;
    std::set<int> peers; // it may address
  };
  Device& device(int index); // refuses an index out of range
  Device& current();
  void refuseLost(int index); // with its sticky error
  void lose(int device, cudaError_t error);

  // ---- streams ----
  std::shared_ptr<Stream> stream(cudaStream_t handle) const;
  /// Queues work, or captures it.
  void submit(const std::shared_ptr<Stream>& stream, Work work);
  void wait(Lock& lock, const std::shared_ptr<Stream>& stream);
  void waitDevice(Lock& lock, int device);
  void record(Event& event, const std::shared_ptr<Stream>& stream);
  void waitEvent(const std::shared_ptr<Stream>& stream, const Event& event);

  // ---- capture (capture.cpp) ----
  void beginCapture(const std::shared_ptr<Stream>& stream, cudaStreamCaptureMode mode);
  std::shared_ptr<Graph> endCapture(const std::shared_ptr<Stream>& stream);
  /// Refuses, and spoils the capture, if the stream is captured: it has nothing to wait for.
  void refuseCaptured(const Stream& stream);
  void refuseCaptured(const Event& event);
  /// Refuses what a capture of this thread's, or with the global mode anybody's, forbids.
  void refuseUnsafe();
  void launch(const std::shared_ptr<Stream>& stream, const Graph& graph);
  /// Gives back the memory of a graph that nobody needs any more, unless a copy does.
  void drop(Graph& graph);
  /// A stream leaves the capture it may be in, which is spoilt by that.
  void abandonCapture(Stream& stream);

  /// The nth call by this name fails?
  cudaError_t planted(const char* name);

  std::mutex mutex; // of all below
  Options options;  // counts calls
  std::condition_variable progress;
  Memory memory;
  Handles<cudaStream_t, Stream> streams{"stream", 0x5100'0000'0000};
  Handles<cudaEvent_t, Event> events{"event", 0x5200'0000'0000};
  Handles<cudaGraph_t, Graph> graphs{"graph", 0x5300'0000'0000};
  Handles<cudaGraphExec_t, Graph> executables{"executable graph", 0x5400'0000'0000};
  Handles<cudaMemPool_t, Pool> pools{"memory pool", 0x5500'0000'0000};
  bool initialised = false; // as by cuInit(): what a forked child cannot use
  size_t workers = 0;

 private:
  void serve(std::shared_ptr<Stream> stream);
  bool perform(Lock& lock, Stream& stream, Work& work);
  void joinCapture(const std::shared_ptr<Stream>& stream, const Event& event);
  void leaveCapture(Capture& capture);
  uint64_t random();

  std::vector<Device> devices_;
  std::set<std::shared_ptr<Stream>> busy_; // with queued work, also when destroyed
  std::vector<std::shared_ptr<Capture>> captures_;
  unsigned long long captured_ = 0; // captures so far
  uint64_t random_state_;
};

/// The one there is, made at the first use.
Runtime& runtime();

/// State of the calling thread.
struct Thread {
  cudaError_t last_error = cudaSuccess;
  int device = 0;
  bool in_host_function = false;
  cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;
};
extern thread_local Thread calling;

/// What a function needs to be in order before it begins.
enum class Needs {
  kNothing, // may be called by anybody at any time
  kDriver,  // a driver and a device; initialises
  kHealth   // and that the current device has no sticky error
};

/// Why the function must not even begin; cudaSuccess if it may.
cudaError_t obstacle(const char* name, Needs needs);
cudaError_t remember(cudaError_t error);

/// Runs body(runtime, lock) as the C function `name`: it throws a Refusal, or returns an error.
template <class Body>
cudaError_t function(const char* name, Needs needs, const Body& body) {
  if (const cudaError_t error = obstacle(name, needs)) return remember(error);
  Runtime& all = runtime();
  try {
    Runtime::Lock lock(all.mutex);
    return remember(body(all, lock));
  } catch (const Refusal& refusal) {
    return remember(refusal.error);
  }
}

} // namespace puone::standin
