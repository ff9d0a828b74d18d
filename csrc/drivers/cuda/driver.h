// SPDX-License-Identifier: BSD-3-Clause
// The cuda driver: what the table's entries do, in C++. Failures are thrown as Error.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "drivers/common/handle_table.h"
#include "drivers/cuda/device.h"
#include "drivers/cuda/event.h"
#include "drivers/cuda/faults.h"
#include "drivers/cuda/graph.h"
#include "drivers/cuda/launch.h"
#include "drivers/cuda/memory.h"
#include "drivers/cuda/status.h"
#include "drivers/cuda/trace.h"
#include "hal/hal.h"

namespace puone::cuda {

/// What a puone_stream stands for: a native stream on loan.
struct Stream {
  Stream(Device& d, int32_t priority) : device(d), native(d.streams.take(priority)) {}
  ~Stream() {
    device.streams.give(native);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Device& device;
  NativeStream& native;
};

class Driver {
 public:
  Driver();
  /// Waits for all work. CUDA's own threads and contexts stay: others in the process may use them.
  ~Driver();

  /// Whether CUDA is in use here, so that it cannot be in a forked child.
  bool isUsed() const {
    return used_.load(std::memory_order_relaxed);
  }

  // device
  int32_t count() const;
  void checkDevice(int32_t device) const;
  void setDevice(int32_t device);
  int32_t currentDevice() const;
  void properties(int32_t device, puone_device_properties* out);
  void memoryInfo(int32_t device, uint64_t* free_bytes, uint64_t* total_bytes);
  void synchronizeDevice(int32_t device);
  void priorityRange(int32_t* least, int32_t* greatest);
  int32_t canAccessPeer(int32_t device, int32_t peer);

  // memory
  void* allocate(size_t bytes);
  void release(void* pointer);
  void* allocateHost(size_t bytes);
  void releaseHost(void* pointer);
  puone_pointer_attributes attributes(const void* pointer) const;
  void copy(void* to, const void* from, size_t bytes, puone_memcpy_kind kind, puone_stream handle);
  void set(void* to, int32_t value, size_t bytes, puone_stream handle);

  // stream
  puone_stream createStream(int32_t priority);
  void destroyStream(puone_stream handle);
  puone_status queryStream(puone_stream handle);
  void synchronizeStream(puone_stream handle);
  void waitEvent(puone_stream stream, puone_event event);
  void hostFunction(puone_stream handle, puone_host_func function, void* user_data);
  void* nativeStream(puone_stream handle);

  // event
  puone_event createEvent(uint32_t flags);
  void destroyEvent(puone_event handle);
  void record(puone_event event, puone_stream stream);
  puone_status queryEvent(puone_event handle);
  void synchronizeEvent(puone_event handle);
  puone_status elapsed(puone_event start, puone_event end, float* out);

  // kernel
  puone_kernel findKernel(const char* name, puone_kernel_info* info) const;
  void launch(puone_kernel kernel, const void* args, size_t bytes, puone_stream handle);

  // extension "dlpack"
  void nativeWaitEvent(cudaStream_t stream, puone_event event);

  // extension "graph"
  void beginCapture(puone_stream handle);
  puone_graph endCapture(puone_stream handle);
  bool isCapturing(puone_stream handle);
  void instantiate(puone_graph handle);
  void launchGraph(puone_graph graph, puone_stream stream);
  void destroyGraph(puone_graph handle);

  // extension "trace"
  Tracer& tracer() {
    return tracer_;
  }

 private:
  /// The device, opened at its first use. Checks that it is there and not lost.
  Device& use(int32_t device);
  Device& open(int32_t device);
  /// Until all work of the device is done, but for what is being captured.
  void waitForDevice(int32_t device);
  /// Likewise, where what the work comes to is not to be told.
  void finish(int32_t device) noexcept;
  /// Throws the oldest failure among `source`'s until then, which is thereby reported.
  template <class Source>
  void report(Source& source, Ticket until);

  std::shared_ptr<Stream> stream(puone_stream handle);
  std::shared_ptr<Event> event(puone_event handle);
  std::shared_ptr<Graph> graph(puone_graph handle);
  const NamedKernel& kernel(puone_kernel handle) const;

  void checkCopy(const void* to, const void* from, size_t bytes, puone_memcpy_kind kind) const;

  /// One piece of work: what a trace says of it, and where it goes.
  struct Work {
    puone_stream stream;
    puone_trace_kind kind;
    const char* name;
    size_t bytes;
  };
  /// Where it goes, natively.
  struct Target {
    Device& device;
    cudaStream_t stream;
    FaultCell& cell; // where its faults go
    Graph* graph;    // that the stream is captured into, or NULL
  };
  /// Calls queue(target) for the work, with its device current.
  template <class Queue>
  void submit(const Work& work, const Queue& queue);
  void submitHostCall(const Work& work, std::function<void()> function);

  std::atomic<bool> used_{false};
  const std::vector<NamedKernel> kernels_; // never changed: handles point in
  Faults faults_;
  Memory memory_;
  std::mutex opening_;
  std::vector<std::unique_ptr<Device>> opened_; // guarded by opening_
  std::array<std::atomic<Device*>, kMaxDevices> devices_{};
  Captures captures_;
  Tracer tracer_;
  std::mutex reporting_; // held while a failure is read and cleared, so that it is told once
  std::mutex mutex_;     // guards the tables
  HandleTable<Stream> streams_{1, "stream"};
  HandleTable<Event> events_{2, "event"};
  HandleTable<Graph> graphs_{3, "graph"};
};

} // namespace puone::cuda
