// SPDX-License-Identifier: BSD-3-Clause
// The table of hal.h: argument checks that need no driver, and exceptions turned into statuses.
#include <pthread.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <new>
#include <string_view>
#include <type_traits>

#include "drivers/common/error.h"
#include "drivers/sim/driver.h"
#include "drivers/sim/host_guard.h"

namespace puone::sim {
namespace {

// The driver between init() and shutdown(). Never destroyed at process exit, when threads may still
// be running its work.
std::atomic<Driver*> instance{nullptr};
std::mutex life; // of init() and shutdown()
std::atomic<bool> bad_fork{false};

constexpr char kBadFork[] =
    "puone sim was used before fork() and its threads do not exist in this child process: use the "
    "spawn or forkserver start method, or fork before the first use";

// ---- fork and exit ----

void beforeFork() {
  life.lock();
  if (Driver* driver = instance.load(std::memory_order_relaxed)) driver->lockAll();
}

void afterFork() {
  if (Driver* driver = instance.load(std::memory_order_relaxed)) driver->unlockAll();
  life.unlock();
}

void afterForkInChild() {
  Driver* driver = instance.load(std::memory_order_relaxed);
  if (driver != nullptr && driver->hasThreads()) bad_fork.store(true, std::memory_order_relaxed);
  afterFork();
}

__attribute__((destructor)) void atExit() {
  if (Driver* driver = instance.load(std::memory_order_acquire)) driver->abandon();
}

// ---- wrapper ----

template <class Body>
puone_status guarded(const char* name, const Body& body) noexcept {
  try {
    return body();
  } catch (const Error& error) {
    setLastError(name, error.text);
    return error.status;
  } catch (const std::bad_alloc&) {
    setLastError(name, "the host is out of memory");
    return PUONE_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    setLastError(name, error.what());
    return PUONE_INTERNAL;
  }
}

Driver& driver() {
  if (bad_fork.load(std::memory_order_relaxed)) fail(PUONE_INTERNAL, "%s", kBadFork);
  Driver* current = instance.load(std::memory_order_acquire);
  if (current == nullptr) fail(PUONE_INTERNAL, "init() has not been called, or shutdown() has");
  if (const char* work = runningWork()) fail(PUONE_INTERNAL, "called from within %s", work);
  return *current;
}

/// An entry whose body returns a status or nothing.
template <class Body>
puone_status entry(const char* name, const Body& body) noexcept {
  return guarded(name, [&] {
    if constexpr (std::is_void_v<decltype(body(driver()))>) {
      body(driver());
      return PUONE_OK;
    } else {
      return body(driver());
    }
  });
}

void required(const void* out) {
  if (out == nullptr) fail(PUONE_INVALID_ARGUMENT, "an out-parameter is NULL");
}

// ---- driver ----

puone_status init() {
  return guarded("init", [] {
    if (bad_fork.load(std::memory_order_relaxed)) fail(PUONE_INTERNAL, "%s", kBadFork);
    const std::lock_guard guard(life);
    if (instance.load(std::memory_order_relaxed) != nullptr) return PUONE_OK;
    static const bool watches_forks = pthread_atfork(beforeFork, afterFork, afterForkInChild) == 0;
    if (!watches_forks) fail(PUONE_INTERNAL, "pthread_atfork failed");
    instance.store(new Driver(Options::fromEnvironment()), std::memory_order_release);
    return PUONE_OK;
  });
}

puone_status shutdown() {
  return guarded("shutdown", [] {
    // The threads to join are the parent's, and so is the memory.
    if (bad_fork.load(std::memory_order_relaxed)) return PUONE_OK;
    const std::lock_guard guard(life);
    delete instance.exchange(nullptr, std::memory_order_acq_rel);
    return PUONE_OK;
  });
}

puone_status describe(puone_driver_info* out) {
  return guarded("describe", [=] {
    required(out);
    *out = {
        "sim",
        "PUOne project",
        "0.1.0",
        PUONE_CAP_STREAMS | PUONE_CAP_STREAM_PRIORITIES | PUONE_CAP_HOST_FUNC | PUONE_CAP_EVENTS |
            PUONE_CAP_EVENT_TIMING | PUONE_CAP_MEMORY | PUONE_CAP_PINNED_MEMORY |
            PUONE_CAP_PEER_ACCESS | PUONE_CAP_KERNELS};
    return PUONE_OK;
  });
}

// ---- device ----

puone_status deviceCount(int32_t* out) {
  return entry("device_count", [=](Driver& d) {
    required(out);
    *out = d.deviceCount();
  });
}

puone_status deviceGet(int32_t* out) {
  return entry("device_get", [=](Driver& d) {
    required(out);
    *out = d.currentDevice();
  });
}

puone_status deviceSet(int32_t device) {
  return entry("device_set", [=](Driver& d) { d.setDevice(device); });
}

puone_status deviceProperties(int32_t device, puone_device_properties* out) {
  return entry("device_properties", [=](Driver& d) {
    required(out);
    d.properties(device, out);
  });
}

puone_status deviceMemoryInfo(int32_t device, uint64_t* free_bytes, uint64_t* total_bytes) {
  return entry("device_memory_info", [=](Driver& d) {
    required(free_bytes);
    required(total_bytes);
    d.memoryInfo(device, free_bytes, total_bytes);
  });
}

puone_status deviceSynchronize(int32_t device) {
  return entry("device_synchronize", [=](Driver& d) { d.synchronizeDevice(device); });
}

puone_status streamPriorityRange(int32_t* least, int32_t* greatest) {
  return entry("stream_priority_range", [=](Driver&) {
    required(least);
    required(greatest);
    *least = 0;
    *greatest = -(Scheduler::kPriorities - 1);
  });
}

puone_status deviceCanAccessPeer(int32_t device, int32_t peer, int32_t* out) {
  return entry("device_can_access_peer", [=](Driver& d) {
    required(out);
    d.checkDevice(device);
    d.checkDevice(peer);
    *out = 1;
  });
}

// ---- memory ----

puone_status allocate(size_t bytes, void** out) {
  return entry("malloc", [=](Driver& d) {
    required(out);
    *out = d.allocate(bytes);
  });
}

puone_status release(void* pointer) {
  return entry("free", [=](Driver& d) {
    if (pointer != nullptr) d.release(pointer);
  });
}

puone_status allocateHost(size_t bytes, void** out) {
  return entry("host_malloc", [=](Driver& d) {
    required(out);
    *out = d.allocateHost(bytes);
  });
}

puone_status releaseHost(void* pointer) {
  return entry("host_free", [=](Driver& d) {
    if (pointer != nullptr) d.releaseHost(pointer);
  });
}

puone_status pointerAttributes(const void* pointer, puone_pointer_attributes* out) {
  return entry("pointer_attributes", [=](Driver& d) {
    required(out);
    *out = d.attributes(pointer);
  });
}

puone_status memcpyAsync(
    void* dst, const void* src, size_t bytes, puone_memcpy_kind kind, puone_stream stream) {
  return entry("memcpy_async", [=](Driver& d) { d.copy(dst, src, bytes, kind, stream); });
}

puone_status memsetAsync(void* dst, int32_t value, size_t bytes, puone_stream stream) {
  return entry("memset_async", [=](Driver& d) { d.set(dst, value, bytes, stream); });
}

// ---- stream ----

puone_status streamCreate(int32_t priority, puone_stream* out) {
  return entry("stream_create", [=](Driver& d) {
    required(out);
    *out = d.createStream(priority);
  });
}

puone_status streamDestroy(puone_stream stream) {
  return entry("stream_destroy", [=](Driver& d) {
    if (stream != nullptr) d.destroyStream(stream);
  });
}

puone_status streamQuery(puone_stream stream) {
  return entry("stream_query", [=](Driver& d) { return d.queryStream(stream); });
}

puone_status streamSynchronize(puone_stream stream) {
  return entry("stream_synchronize", [=](Driver& d) { d.synchronizeStream(stream); });
}

puone_status streamWaitEvent(puone_stream stream, puone_event event) {
  return entry("stream_wait_event", [=](Driver& d) { d.waitEvent(stream, event); });
}

puone_status streamHostFunc(puone_stream stream, puone_host_func fn, void* user_data) {
  return entry("stream_host_func", [=](Driver& d) { d.hostFunction(stream, fn, user_data); });
}

puone_status streamNativeHandle(puone_stream stream, void** out) {
  return entry("stream_native_handle", [=](Driver& d) {
    required(out);
    d.checkStream(stream);
    *out = stream;
  });
}

// ---- event ----

puone_status eventCreate(uint32_t flags, puone_event* out) {
  return entry("event_create", [=](Driver& d) {
    required(out);
    *out = d.createEvent(flags);
  });
}

puone_status eventDestroy(puone_event event) {
  return entry("event_destroy", [=](Driver& d) {
    if (event != nullptr) d.destroyEvent(event);
  });
}

puone_status eventRecord(puone_event event, puone_stream stream) {
  return entry("event_record", [=](Driver& d) { d.record(event, stream); });
}

puone_status eventQuery(puone_event event) {
  return entry("event_query", [=](Driver& d) { return d.queryEvent(event); });
}

puone_status eventSynchronize(puone_event event) {
  return entry("event_synchronize", [=](Driver& d) { d.synchronizeEvent(event); });
}

puone_status eventElapsedMs(puone_event start, puone_event end, float* out) {
  return entry("event_elapsed_ms", [=](Driver& d) {
    required(out);
    return d.elapsed(start, end, out);
  });
}

// ---- kernel ----

puone_status kernelFind(const char* name, puone_kernel* out) {
  return entry("kernel_find", [=](Driver& d) {
    required(name);
    required(out);
    *out = d.findKernel(name);
  });
}

puone_status kernelLaunch(
    puone_kernel kernel, const void* args, size_t bytes, puone_stream stream) {
  return entry("kernel_launch", [=](Driver& d) { d.launch(kernel, args, bytes, stream); });
}

// ---- extension "fault" ----

puone_status outOfMemoryAt(uint64_t nth) {
  return entry("fault.out_of_memory_at", [=](Driver& d) { d.faults().out_of_memory.arm(nth); });
}

puone_status kernelErrorAt(uint64_t nth) {
  return entry("fault.kernel_error_at", [=](Driver& d) { d.faults().kernel_error.arm(nth); });
}

puone_status deviceLost(int32_t device) {
  return entry("fault.device_lost", [=](Driver& d) { d.loseDevice(device); });
}

puone_status latencyNs(uint64_t ns) {
  return entry("fault.latency_ns", [=](Driver& d) { d.setLatency(ns); });
}

puone_status resetFaults() {
  return entry("fault.reset", [](Driver& d) { d.clearFaults(); });
}

const puone_fault_api kFault = {
    sizeof(puone_fault_api),
    PUONE_FAULT_VERSION,
    outOfMemoryAt,
    kernelErrorAt,
    deviceLost,
    latencyNs,
    resetFaults,
};

puone_status getExtension(const char* name, uint32_t min_version, const void** out) {
  return guarded("get_extension", [=] {
    required(name);
    required(out);
    if (std::string_view(name) != PUONE_FAULT_EXTENSION || min_version > PUONE_FAULT_VERSION) {
      fail(PUONE_UNSUPPORTED, "no extension %.100s of version %u or newer", name, min_version);
    }
    *out = &kFault;
    return PUONE_OK;
  });
}

const puone_hal_api kTable = {
    .struct_size = sizeof(puone_hal_api),
    .abi_major = PUONE_HAL_ABI_MAJOR,
    .abi_minor = PUONE_HAL_ABI_MINOR,
    .init = init,
    .shutdown = shutdown,
    .describe = describe,
    .last_error_message = lastError,
    .device_count = deviceCount,
    .device_get = deviceGet,
    .device_set = deviceSet,
    .device_properties = deviceProperties,
    .device_memory_info = deviceMemoryInfo,
    .device_synchronize = deviceSynchronize,
    .stream_priority_range = streamPriorityRange,
    .device_can_access_peer = deviceCanAccessPeer,
    .malloc = allocate,
    .free = release,
    .host_malloc = allocateHost,
    .host_free = releaseHost,
    .pointer_attributes = pointerAttributes,
    .memcpy_async = memcpyAsync,
    .memset_async = memsetAsync,
    .stream_create = streamCreate,
    .stream_destroy = streamDestroy,
    .stream_query = streamQuery,
    .stream_synchronize = streamSynchronize,
    .stream_wait_event = streamWaitEvent,
    .stream_host_func = streamHostFunc,
    .stream_native_handle = streamNativeHandle,
    .event_create = eventCreate,
    .event_destroy = eventDestroy,
    .event_record = eventRecord,
    .event_query = eventQuery,
    .event_synchronize = eventSynchronize,
    .event_elapsed_ms = eventElapsedMs,
    .kernel_find = kernelFind,
    .kernel_launch = kernelLaunch,
    .get_extension = getExtension,
};

} // namespace
} // namespace puone::sim

extern "C" __attribute__((visibility("default"))) puone_status
puone_hal_get(uint32_t abi_major, const puone_hal_api** out) {
  return puone::sim::guarded("puone_hal_get", [=] {
    puone::sim::required(out);
    if (abi_major != PUONE_HAL_ABI_MAJOR) {
      puone::fail(
          PUONE_UNSUPPORTED, "this driver speaks ABI %u, not %u", PUONE_HAL_ABI_MAJOR, abi_major);
    }
    *out = &puone::sim::kTable;
    return PUONE_OK;
  });
}
