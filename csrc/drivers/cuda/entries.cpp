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
#include "drivers/cuda/driver.h"
#include "drivers/cuda/host_call.h"

namespace puone::cuda {
namespace {

// The driver between init() and shutdown(). Never destroyed at process exit, when CUDA may be gone.
std::atomic<Driver*> instance{nullptr};
std::mutex life; // of init() and shutdown()
std::atomic<bool> bad_fork{false};

constexpr char kBadFork[] =
    "puone cuda was used before fork(), and CUDA cannot be used in this child process: use the "
    "spawn or forkserver start method, or fork before the first use";

// ---- fork ----

void beforeFork() {
  life.lock();
}

void afterFork() {
  life.unlock();
}

void afterForkInChild() {
  const Driver* driver = instance.load(std::memory_order_relaxed);
  if (driver != nullptr && driver->isUsed()) bad_fork.store(true, std::memory_order_relaxed);
  life.unlock();
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
  if (inHostCall()) fail(PUONE_INTERNAL, "called from within a host function");
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
    instance.store(new Driver(), std::memory_order_release);
    return PUONE_OK;
  });
}

puone_status shutdown() {
  return guarded("shutdown", [] {
    // The work to wait for is the parent's, and so is the memory.
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
        "cuda",
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
    *out = d.count();
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
  return entry("stream_priority_range", [=](Driver& d) {
    required(least);
    required(greatest);
    d.priorityRange(least, greatest);
  });
}

puone_status deviceCanAccessPeer(int32_t device, int32_t peer, int32_t* out) {
  return entry("device_can_access_peer", [=](Driver& d) {
    required(out);
    *out = d.canAccessPeer(device, peer);
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
    *out = d.nativeStream(stream);
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

// ---- extension "graph" ----

puone_status captureBegin(puone_stream stream) {
  return entry("graph.capture_begin", [=](Driver& d) { d.beginCapture(stream); });
}

puone_status captureEnd(puone_stream stream, puone_graph* out) {
  return entry("graph.capture_end", [=](Driver& d) {
    required(out);
    *out = d.endCapture(stream);
  });
}

puone_status isCapturing(puone_stream stream, int32_t* out) {
  return entry("graph.is_capturing", [=](Driver& d) {
    required(out);
    *out = d.isCapturing(stream) ? 1 : 0;
  });
}

puone_status instantiate(puone_graph graph) {
  return entry("graph.instantiate", [=](Driver& d) { d.instantiate(graph); });
}

puone_status launchGraph(puone_graph graph, puone_stream stream) {
  return entry("graph.launch", [=](Driver& d) { d.launchGraph(graph, stream); });
}

puone_status destroyGraph(puone_graph graph) {
  return entry("graph.destroy", [=](Driver& d) {
    if (graph != nullptr) d.destroyGraph(graph);
  });
}

const puone_graph_api kGraph = {
    sizeof(puone_graph_api),
    PUONE_GRAPH_VERSION,
    captureBegin,
    captureEnd,
    isCapturing,
    instantiate,
    launchGraph,
    destroyGraph,
};

// ---- extension "trace" ----

puone_status traceStart() {
  return entry("trace.start", [](Driver& d) { d.tracer().start(); });
}

puone_status traceStop(const puone_trace_record** out, uint64_t* count) {
  return entry("trace.stop", [=](Driver& d) {
    required(out);
    required(count);
    const std::vector<puone_trace_record>& records = d.tracer().stop();
    *out = records.data();
    *count = records.size();
  });
}

puone_status traceCorrelation(uint64_t* out) {
  return entry("trace.correlation", [=](Driver&) {
    required(out);
    *out = Tracer::lastCorrelation();
  });
}

const puone_trace_api kTrace = {
    sizeof(puone_trace_api),
    PUONE_TRACE_VERSION,
    traceStart,
    traceStop,
    traceCorrelation,
};

// ---- extension "dlpack" ----

puone_status dlpackDeviceId(int32_t device, int32_t* out) {
  return entry("dlpack.device_id", [=](Driver& d) {
    required(out);
    d.checkDevice(device);
    *out = device;
  });
}

puone_status nativeStreamWaitEvent(void* native_stream, puone_event event) {
  return entry("dlpack.native_stream_wait_event", [=](Driver& d) {
    if (native_stream == nullptr) fail(PUONE_INVALID_ARGUMENT, "native_stream is NULL");
    d.nativeWaitEvent(static_cast<cudaStream_t>(native_stream), event);
  });
}

constexpr int32_t kDlCuda = 2; // kDLCUDA of dlpack.h

const puone_dlpack_api kDlpack = {
    sizeof(puone_dlpack_api),
    PUONE_DLPACK_VERSION,
    kDlCuda,
    0,
    cudaStreamLegacy,
    dlpackDeviceId,
    nativeStreamWaitEvent,
};

// ---- extensions ----

struct Extension {
  std::string_view name;
  uint32_t version;
  const void* table;
};

constexpr Extension kExtensions[] = {
    {PUONE_DLPACK_EXTENSION, PUONE_DLPACK_VERSION, &kDlpack},
    {PUONE_GRAPH_EXTENSION, PUONE_GRAPH_VERSION, &kGraph},
    {PUONE_TRACE_EXTENSION, PUONE_TRACE_VERSION, &kTrace},
};

puone_status getExtension(const char* name, uint32_t min_version, const void** out) {
  return guarded("get_extension", [=] {
    required(name);
    required(out);
    for (const Extension& extension : kExtensions) {
      if (extension.name != name || extension.version < min_version) continue;
      *out = extension.table;
      return PUONE_OK;
    }
    fail(PUONE_UNSUPPORTED, "no extension %.100s of version %u or newer", name, min_version);
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
} // namespace puone::cuda

extern "C" __attribute__((visibility("default"))) puone_status
puone_hal_get(uint32_t abi_major, const puone_hal_api** out) {
  return puone::cuda::guarded("puone_hal_get", [=] {
    puone::cuda::required(out);
    if (abi_major != PUONE_HAL_ABI_MAJOR) {
      puone::fail(
          PUONE_UNSUPPORTED, "this driver speaks ABI %u, not %u", PUONE_HAL_ABI_MAJOR, abi_major);
    }
    *out = &puone::cuda::kTable;
    return PUONE_OK;
  });
}
