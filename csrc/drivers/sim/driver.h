// SPDX-License-Identifier: BSD-3-Clause
// The simulated accelerator: what the table's entries do, in C++. Failures are thrown as Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "drivers/common/handle_table.h"
#include "drivers/sim/faults.h"
#include "drivers/sim/memory.h"
#include "drivers/sim/options.h"
#include "drivers/sim/parallel.h"
#include "drivers/sim/scheduler.h"
#include "drivers/sim/stream.h"
#include "hal/hal.h"
#include "kernels/contract.h"
#include "kernels/kernels.h"

namespace puone::sim {

/// What stands behind a puone_kernel: a kernel and the name its launches fail under.
struct NamedKernel {
  kernels::Kernel kernel;
  const kernels::KernelContract& contract;
  std::string name;
};

class Driver {
 public:
  explicit Driver(const Options& options);
  ~Driver();

  // device
  int32_t count() const {
    return options_.devices;
  }
  void checkDevice(int32_t device) const;
  void setDevice(int32_t device);
  int32_t currentDevice() const;
  void properties(int32_t device, puone_device_properties* out) const;
  void memoryInfo(int32_t device, uint64_t* free_bytes, uint64_t* total_bytes) const;
  void synchronizeDevice(int32_t device);
  void priorityRange(int32_t* least, int32_t* greatest) const;
  int32_t canAccessPeer(int32_t device, int32_t peer) const;

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

  // faults
  Faults& faults() {
    return faults_;
  }
  void loseDevice(int32_t device);
  void setLatency(uint64_t ns);
  void clearFaults();

  /// See Scheduler::abandon().
  void abandon() {
    scheduler_.abandon();
  }

  // fork(): hold all locks across it, so that the child finds whole tables; and whether the child
  // will miss threads.
  void lockAll();
  void unlockAll();
  bool hasThreads() const {
    return scheduler_.threads() + parallel_.threads() > 0;
  }

 private:
  using Lock = Scheduler::Lock;

  puone_stream addStream(std::shared_ptr<Stream> stream);
  /// Checks a handle and its device and queues what `make` returns.
  template <class Make>
  void queue(puone_stream handle, const Make& make);
  void checkCopy(
      const void* to,
      const void* from,
      size_t bytes,
      puone_memcpy_kind kind,
      int32_t devices[2]) const;

  const Options options_;
  const std::vector<NamedKernel> kernels_; // never changed: handles and queued work point in
  Faults faults_;
  Memory memory_;
  Parallel parallel_;
  Scheduler scheduler_;
  HandleTable<Stream> streams_{1, "stream"}; // guarded by the scheduler's lock
  HandleTable<Event> events_{2, "event"};    // likewise
};

} // namespace puone::sim
