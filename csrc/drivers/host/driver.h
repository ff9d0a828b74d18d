// SPDX-License-Identifier: BSD-3-Clause
// A driver over host memory: its device is a part of the host's memory and a thread for each
// stream. It is the driver to begin with: it works, it is short, and each function below stands for
// one call of your runtime library. Replace them one at a time; what is not replaced yet keeps
// working only as long as host and device share memory, so begin with memory, then streams, then
// events.
//
// Each function is one entry of hal.h, which says in full what it must do; drivers/common/entries.h
// makes the C table of them. A failure is thrown (fail(status, text)), and becomes the entry's
// status and message. Every function may be called from any thread between init() and shutdown().
// Arguments are valid: run with PUONE_VALIDATE=1 while you develop, and misuse is refused before it
// gets here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "drivers/host/memory.h"
#include "drivers/host/queue.h"
#include "hal/hal.h"

namespace puone::host {

/// The object of a puone_event. Yours holds the native event.
struct Event {
  uint32_t flags;
  std::shared_ptr<Record> record; // the last one, NULL before the first
};

class Driver {
 public:
  // ---- device ----

  /// How many devices there are: ask your runtime library, but let it create no context yet. 0
  /// where there is none, which is no error.
  int32_t count() const {
    return 1;
  }
  /// Name, memory in bytes, alignment of allocations (at least 256) and number of parallel units.
  puone_device_properties properties(int32_t device) const;
  /// Bytes free and total, as allocate() sees them.
  void memoryInfo(int32_t device, uint64_t* free_bytes, uint64_t* total_bytes) const;
  /// Waits for all work of the device, and throws the oldest failure of it.
  void synchronizeDevice(int32_t device);
  /// The priorities of streams, lower being more urgent: 0 and 0 where there is one only. If you
  /// have more, declare PUONE_CAP_STREAM_PRIORITIES in entries.cpp.
  void priorityRange(int32_t device, int32_t* least, int32_t* greatest) const;
  /// 1 if the devices reach each other's memory; then declare PUONE_CAP_PEER_ACCESS.
  int32_t canAccessPeer(int32_t device, int32_t peer) const;

  // ---- memory ----

  /// Device memory, aligned as properties() says. Throws Error(OUT_OF_MEMORY), which makes the
  /// caching allocator give back what it keeps and ask again.
  void* allocate(int32_t device, size_t bytes);
  /// Gives it back, once the device's queued work is done.
  void release(void* block);
  /// Pinned memory: of the host, and reachable by copies that do not block.
  void* allocateHost(size_t bytes);
  /// Gives it back, once the queued work of all devices is done.
  void releaseHost(void* block);
  /// Which block an address is in: of the device, pinned, or unknown to the driver.
  puone_pointer_attributes attributes(const void* address) const;
  /// Queues a copy of `bytes` bytes; `kind` says which sides are host memory.
  void copy(void* to, const void* from, size_t bytes, puone_memcpy_kind kind, puone_stream stream);
  /// Queues setting `bytes` bytes of device memory to the low 8 bits of `value`.
  void set(void* to, int32_t value, size_t bytes, puone_stream stream);

  // ---- stream ----

  /// A new stream; its work runs in order, beside that of other streams.
  puone_stream createStream(int32_t device, int32_t priority);
  // A stream around a native one that somebody else made: when you have native streams, declare
  // PUONE_CAP_EXTERNAL_STREAMS and write `puone_stream wrapStream(int32_t device, void* native)`.

  /// The handle dies; queued work still runs to its end. May wait.
  void destroyStream(puone_stream stream);
  /// PUONE_OK or PUONE_NOT_READY. Throws a failure of the work that is not reported yet.
  puone_status queryStream(puone_stream stream);
  /// Waits for the work queued so far, and throws its failure.
  void synchronizeStream(puone_stream stream);
  /// Later work of the stream waits for the event's last record. It does not wait here.
  void waitEvent(puone_stream stream, puone_event event);
  /// Queues a call of `function` on a thread of the driver. PyTorch's DataLoader, the process group
  /// and the pinned memory cache need it.
  void hostFunction(puone_stream stream, puone_host_func function, void* user_data);
  /// The native stream, for other libraries; the handle itself where there is none.
  void* nativeStream(puone_stream stream);

  // ---- event ----

  /// A new event; `flags` are puone_event_flags.
  puone_event createEvent(int32_t device, uint32_t flags);
  /// The handle dies; waits that are queued on it still hold.
  void destroyEvent(puone_event event);
  /// Queues a record, which takes the place of the earlier one.
  void record(puone_event event, puone_stream stream);
  /// PUONE_OK if the last record is complete or there is none, else PUONE_NOT_READY.
  puone_status queryEvent(puone_event event);
  /// Waits for the last record.
  void synchronizeEvent(puone_event event);
  /// Milliseconds between the completion of two records; PUONE_NOT_READY if one is pending.
  puone_status elapsed(puone_event start, puone_event end, float* out);

  // ---- kernel ----

  /// The kernel of a name, and in `info` its version, element types and size of arguments. Throws
  /// Error(UNSUPPORTED) for a kernel that is not there: the CPU runs the operator instead.
  puone_kernel findKernel(const char* name, puone_kernel_info* info) const;
  /// Queues a kernel; `args` is its argument struct, to be copied now. `context` gives workspace on
  /// the device, counted with all other memory.
  void launch(
      puone_kernel kernel,
      const void* args,
      puone_stream stream,
      const puone_launch_context* context);

  // ---- trace: optional, for torch.profiler ----

  /// Records all work that is queued from now on.
  void startTrace();
  /// Waits for the work recorded, and returns when each piece of it ran. The records live until the
  /// next startTrace().
  const std::vector<puone_trace_record>& stopTrace();

  // ---- life ----

  /// What the calling thread runs, if it is the driver's; such work must not call an entry.
  static const char* runningWork() {
    return Queues::runningWork();
  }
  /// All locks, across fork(); and whether there are threads, which a child lacks.
  void lockAll();
  void unlockAll();
  bool hasThreads() const {
    return queues_.hasThreads();
  }

 private:
  static Event& eventOf(puone_event event);
  /// The event's last record, NULL if there is none.
  std::shared_ptr<Record> recordOf(puone_event event) const;

  Memory memory_;
  mutable std::mutex mutex_; // of the events
  std::unordered_map<const Event*, std::unique_ptr<Event>> events_;
  Queues queues_; // ends first: its work uses the memory
};

} // namespace puone::host
