// SPDX-License-Identifier: BSD-3-Clause
// The cuda driver: what the table's entries do, in C++. Failures are thrown as Error. Arguments are
// not checked: that is the validation layer's (hal/validation.h).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "drivers/common/handle_pool.h"
#include "drivers/common/names.h"
#include "drivers/cuda/communicator.h"
#include "drivers/cuda/device.h"
#include "drivers/cuda/device_errors.h"
#include "drivers/cuda/event.h"
#include "drivers/cuda/graph.h"
#include "drivers/cuda/launch.h"
#include "drivers/cuda/memory.h"
#include "drivers/cuda/module.h"
#include "drivers/cuda/status.h"
#include "drivers/cuda/trace.h"
#include "hal/hal.h"
#include "hal/module.h"

namespace puone::cuda {

/// What a puone_stream points to: a native stream on loan.
struct Stream {
  Stream(Device& d, NativeStream& on_loan) : device(d), native(on_loan) {}
  ~Stream() {
    device.streams.give(native);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Device& device;
  NativeStream& native;
};

/// What a puone_graph points to. Launches share the graph, and may end after the handle.
struct GraphHandle {
  explicit GraphHandle(std::shared_ptr<Graph> g) : graph(std::move(g)) {}
  const std::shared_ptr<Graph> graph;
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
  puone_device_properties properties(int32_t device);
  void memoryInfo(int32_t device, uint64_t* free_bytes, uint64_t* total_bytes);
  void synchronizeDevice(int32_t device);
  void priorityRange(int32_t device, int32_t* least, int32_t* greatest);
  int32_t canAccessPeer(int32_t device, int32_t peer);

  // memory
  void* allocate(int32_t device, size_t bytes);
  void release(void* pointer);
  void* allocateHost(size_t bytes);
  void releaseHost(void* pointer);
  puone_pointer_attributes attributes(const void* pointer) const;
  void copy(void* to, const void* from, size_t bytes, puone_memcpy_kind kind, puone_stream handle);
  void set(void* to, int32_t value, size_t bytes, puone_stream handle);

  // stream
  puone_stream createStream(int32_t device, int32_t priority);
  puone_stream wrapStream(int32_t device, void* native);
  void destroyStream(puone_stream handle);
  puone_status queryStream(puone_stream handle);
  void synchronizeStream(puone_stream handle);
  void waitEvent(puone_stream stream, puone_event event);
  void hostFunction(puone_stream handle, puone_host_func function, void* user_data);
  void* nativeStream(puone_stream handle);

  // event
  puone_event createEvent(int32_t device, uint32_t flags);
  void destroyEvent(puone_event handle);
  void record(puone_event event, puone_stream stream);
  puone_status queryEvent(puone_event handle);
  void synchronizeEvent(puone_event handle);
  puone_status elapsed(puone_event start, puone_event end, float* out);

  // kernel
  /// Whether it was built with kernels.
  static bool hasKernels();
  puone_kernel findKernel(const char* name, puone_kernel_info* info) const;
  void launch(
      puone_kernel kernel,
      const void* args,
      puone_stream handle,
      const puone_launch_context* context);

  // extension "dlpack"
  void nativeWaitEvent(cudaStream_t stream, puone_event event);

  // extension "graph"
  void beginCapture(puone_stream handle);
  puone_graph endCapture(puone_stream handle);
  bool isCapturing(puone_stream handle);
  void instantiate(puone_graph handle);
  void launchGraph(puone_graph graph, puone_stream stream);
  void destroyGraph(puone_graph handle);

  // extension "module"
  puone_module_target moduleTarget(int32_t device);
  std::string compile(const char* source, const puone_module_options& options) const;
  puone_module loadModule(int32_t device, std::string_view image);
  puone_kernel findInModule(puone_module handle, const puone_module_kernel& declared);
  void unloadModule(puone_module handle);

  // extension "collective"
  static const char* missingCollectives();
  puone_device_identity identity(int32_t device);
  static puone_collective_id createCollectiveId();
  puone_communicator initCommunicator(
      int32_t device,
      const puone_collective_id& id,
      int32_t rank,
      int32_t size,
      uint32_t timeout_ms);
  void destroyCommunicator(puone_communicator communicator);
  void abortCommunicator(puone_communicator communicator);
  void queryCommunicator(puone_communicator communicator);
  void allReduce(
      puone_communicator communicator,
      const void* send,
      void* recv,
      uint64_t count,
      int32_t type,
      puone_collective_reduction reduction,
      puone_stream stream);
  void broadcast(
      puone_communicator communicator,
      const void* send,
      void* recv,
      uint64_t count,
      int32_t type,
      int32_t root,
      puone_stream stream);
  void reduce(
      puone_communicator communicator,
      const void* send,
      void* recv,
      uint64_t count,
      int32_t type,
      puone_collective_reduction reduction,
      int32_t root,
      puone_stream stream);
  void allGather(
      puone_communicator communicator,
      const void* send,
      void* recv,
      uint64_t count,
      int32_t type,
      puone_stream stream);
  void reduceScatter(
      puone_communicator communicator,
      const void* send,
      void* recv,
      uint64_t count,
      int32_t type,
      puone_collective_reduction reduction,
      puone_stream stream);
  void send(
      puone_communicator communicator,
      const void* buffer,
      uint64_t count,
      int32_t type,
      int32_t peer,
      puone_stream stream);
  void receive(
      puone_communicator communicator,
      void* buffer,
      uint64_t count,
      int32_t type,
      int32_t peer,
      puone_stream stream);
  void beginGroup(puone_communicator communicator);
  void endGroup(puone_communicator communicator);

  // extension "trace"
  void startTrace() {
    tracer_.start();
  }
  const std::vector<puone_trace_record>& stopTrace() {
    return tracer_.stop();
  }

 private:
  /// The device, opened at its first use, current for CUDA. Checks that it is not lost.
  Device& use(int32_t device);
  cudaDeviceProp nativeProperties(int32_t device);
  Device& open(int32_t device);
  /// The device to allocate pinned memory through, which every device can use: one that is open,
  /// since opening another one costs a context. A lost one only if all are.
  int32_t deviceForHostMemory() const;
  /// Until all work of the device is done, but for what is being captured.
  void waitForDevice(int32_t device);
  /// Likewise, where the work's errors are not reported.
  void finish(int32_t device) noexcept;
  /// Throws the oldest failure among `source`'s until then, which is thereby reported.
  template <class Source>
  void report(Source& source, Ticket until);

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
    ErrorCell& cell; // where its device errors go
    Graph* graph;    // that the stream is captured into, or NULL
  };
  /// Calls queue(target) for the work, with its device current for CUDA.
  template <class Queue>
  void submit(const Work& work, const Queue& queue);
  void submitHostCall(const Work& work, std::function<void()> function);
  /// Calls queue(nccl, communicator, stream), which returns the library's status.
  template <class Queue>
  void submitCollective(
      const char* name, puone_communicator communicator, puone_stream stream, const Queue& queue);

  std::atomic<bool> used_{false};
  const std::vector<NamedKernel> kernels_; // never changed: handles point in
  DeviceErrors errors_;
  Memory memory_;
  std::mutex opening_;
  std::vector<std::unique_ptr<Device>> opened_; // guarded by opening_
  std::array<std::atomic<Device*>, kMaxDevices> devices_{};
  Captures captures_;
  Tracer tracer_;
  std::mutex reporting_; // held while a failure is read and cleared, so that it is reported once
  Names names_;
  HandlePool<Module> modules_;
  HandlePool<Stream> streams_;
  HandlePool<Event> events_;
  HandlePool<GraphHandle> graphs_;
  HandlePool<Communicator> communicators_;
};

} // namespace puone::cuda
