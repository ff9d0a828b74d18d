// SPDX-License-Identifier: BSD-3-Clause
// The simulated accelerator: what the table's entries do, in C++. Failures are thrown as Error.
// Arguments are valid: the table is wrapped by the validation layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "drivers/common/named_kernel.h"
#include "drivers/common/names.h"
#include "drivers/sim/faults.h"
#include "drivers/sim/graph.h"
#include "drivers/sim/memory.h"
#include "drivers/sim/module.h"
#include "drivers/sim/options.h"
#include "drivers/sim/parallel.h"
#include "drivers/sim/scheduler.h"
#include "drivers/sim/stream.h"
#include "drivers/sim/trace.h"
#include "hal/hal.h"
#include "hal/ipc.h"
#include "hal/module.h"

namespace puone::sim {

/// The object of a puone_stream. A stream can have several handles (stream_from_native).
struct StreamHandle {
  std::shared_ptr<Stream> stream;
};

/// The object of a puone_graph.
struct GraphHandle {
  std::unique_ptr<Graph> graph;
};

/// Destroyed handles. Their addresses are reused as late as possible, so that a use after destroy
/// is detected, and does not reach a new handle at the same address.
template <class T>
class Quarantine {
 public:
  void add(std::unique_ptr<T> handle) {
    resting_.push_back(std::move(handle));
    if (resting_.size() > kMost) resting_.pop_front();
  }

 private:
  static constexpr size_t kMost = 4096;
  std::deque<std::unique_ptr<T>> resting_;
};

class Driver {
 public:
  explicit Driver(const Options& options);
  ~Driver();

  // device
  int32_t count() const {
    return options_.devices;
  }
  puone_device_properties properties(int32_t device) const;
  void memoryInfo(int32_t device, uint64_t* free_bytes, uint64_t* total_bytes) const;
  void synchronizeDevice(int32_t device);
  void priorityRange(int32_t device, int32_t* least, int32_t* greatest) const;
  int32_t canAccessPeer(int32_t device, int32_t peer) const;

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
  puone_kernel findKernel(const char* name, puone_kernel_info* info) const;
  /// Host kernels allocate their workspace on the heap, not through `context`.
  void launch(
      puone_kernel kernel,
      const void* args,
      puone_stream handle,
      const puone_launch_context* context);

  // graph
  void beginCapture(puone_stream handle);
  puone_graph endCapture(puone_stream handle);
  bool isCapturing(puone_stream handle);
  void instantiate(puone_graph handle);
  void launchGraph(puone_graph graph, puone_stream handle);
  void destroyGraph(puone_graph handle);

  // trace
  void startTrace();
  const std::vector<puone_trace_record>& stopTrace();

  // memory of several processes
  puone_ipc_memory_handle exportMemory(void* block);
  void* openMemory(int32_t device, const puone_ipc_memory_handle& handle);
  void closeMemory(void* pointer) {
    release(pointer);
  }

  // modules
  puone_module_target moduleTarget(int32_t device) const;
  std::string compile(const char* source, const puone_module_options& options) const;
  puone_module loadModule(int32_t device, std::string_view image);
  puone_kernel findInModule(puone_module handle, const puone_module_kernel& declared);
  void unloadModule(puone_module handle);

  // injected faults
  InjectedFaults& faults() {
    return faults_;
  }
  void loseDevice(int32_t device);
  void setLatency(uint64_t ns);
  void clearFaults();

  /// See Scheduler::abandon().
  void abandon() {
    scheduler_.abandon();
  }

  // fork(): hold all locks across it, so that the child's tables are consistent; and whether there
  // are threads, which do not exist in the child.
  void lockAll();
  void unlockAll();
  bool hasThreads() const {
    return scheduler_.threads() + parallel_.threads() > 0;
  }

 private:
  using Lock = Scheduler::Lock;

  /// A new handle of the stream. Takes no lock: the caller holds the scheduler's.
  puone_stream addHandle(std::shared_ptr<Stream> stream);
  /// Queues what `make` returns, unless the stream's device is lost; or captures it.
  template <class Make>
  void queue(puone_stream handle, const Make& make);
  // These take no lock: the caller holds the scheduler's.
  void submit(const std::shared_ptr<Stream>& stream, std::unique_ptr<Work> work);
  std::shared_ptr<Record> mark(const std::shared_ptr<Stream>& stream, bool timed);
  void waitFor(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Record>& record);
  std::vector<std::shared_ptr<Stream>> queueSteps(
      const Graph& graph, const std::shared_ptr<Stream>& stream);
  Capture& captureOf(const Event& event);
  /// Throws Error(DEVICE_LOST) if the address is of a lost device.
  void checkAlive(const void* address) const;

  const Options options_;
  const kernels::Variant& variant_;        // of the kernels
  const std::vector<NamedKernel> kernels_; // never changed: handles and queued work point into it
  InjectedFaults faults_;
  Memory memory_;
  Names names_;
  // Modules that are loaded, which queued work and graphs use; guarded by the scheduler's lock.
  std::unordered_map<const Module*, std::unique_ptr<Module>> modules_;
  Quarantine<Module> unloaded_modules_;
  Parallel parallel_;
  Scheduler scheduler_;
  Tracer tracer_; // guarded by the scheduler's lock
  // Objects that the caller has created and not destroyed; guarded by the scheduler's lock.
  std::unordered_map<const StreamHandle*, std::unique_ptr<StreamHandle>> streams_;
  std::unordered_map<const Event*, std::unique_ptr<Event>> events_;
  std::unordered_map<const GraphHandle*, std::unique_ptr<GraphHandle>> graphs_;
  std::unordered_map<uint64_t, std::unique_ptr<Capture>> captures_; // those that go on, by id
  Quarantine<StreamHandle> destroyed_streams_;                      // guarded by the same lock
  Quarantine<Event> destroyed_events_;
  Quarantine<GraphHandle> destroyed_graphs_;
};

} // namespace puone::sim
