// SPDX-License-Identifier: BSD-3-Clause
// The table of hal.h for a driver in C++: each entry calls a method of the driver, and turns an
// exception into a status and a text. Arguments are not checked here: that is the validation layer
// (hal/validation.h).
#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>

#include "drivers/common/error.h"
#include "drivers/common/life.h"
#include "hal/hal.h"

namespace puone {

/// The driver's answer to describe().
struct Description {
  const char* name; // lower case, [a-z0-9_]+
  const char* vendor;
  const char* version;
  uint64_t capabilities; // without PUONE_CAP_KERNELS
};

/// Fills a caller's struct with the members that both sides know.
template <class T>
void fillStruct(T* out, T values) {
  values.struct_size = out->struct_size;
  std::memcpy(out, &values, std::min<size_t>(out->struct_size, sizeof(T)));
}

/// A table that get_extension() gives.
struct Extension {
  std::string_view name;
  uint32_t version;
  const void* table;
  /// Why it is not there on this machine, NULL if it is; NULL for one that always is.
  const char* (*missing)() = nullptr;
};

/// `Traits` as in life.h.
template <class Traits>
class Entries {
  using Driver = typename Traits::Driver;

 public:
  /// An entry that needs no driver: its body returns a status or nothing.
  template <class Body>
  static puone_status guarded(const char* name, const Body& body) noexcept {
    try {
      if constexpr (std::is_void_v<decltype(body())>) {
        body();
        return PUONE_OK;
      } else {
        return body();
      }
    } catch (const Error& error) {
      setLastError(name, error.text, error.origin);
      return error.status;
    } catch (const std::bad_alloc&) {
      setLastError(name, "the host is out of memory");
      return PUONE_OUT_OF_MEMORY;
    } catch (const std::exception& error) {
      setLastError(name, error.what());
      return PUONE_INTERNAL;
    }
  }

  /// An entry whose body takes the driver.
  template <class Body>
  static puone_status entry(const char* name, const Body& body) noexcept {
    return guarded(name, [&] {
      const typename Life<Traits>::Call call;
      return body(call.driver());
    });
  }

  /// puone_hal_get()
  static puone_status get(uint32_t abi_major, const puone_hal_api** out) noexcept {
    return guarded("puone_hal_get", [=] {
      if (out == nullptr) fail(PUONE_INVALID_ARGUMENT, "out is NULL");
      if (abi_major != PUONE_HAL_ABI_MAJOR) {
        fail(
            PUONE_UNSUPPORTED, "this driver speaks ABI %u, not %u", PUONE_HAL_ABI_MAJOR, abi_major);
      }
      *out = &kTable;
    });
  }

 private:
  /// An entry that a driver without kernels does not have.
  template <class Body>
  static puone_status kernelEntry(const char* name, const Body& body) {
    if (Traits::hasKernels()) return entry(name, body);
    return guarded(name, [] { fail(PUONE_UNSUPPORTED, "this driver was built without kernels"); });
  }

  // ---- driver ----

  static puone_status init() {
    return guarded("init", [] { Life<Traits>::begin(); });
  }

  static puone_status shutdown() {
    return guarded("shutdown", [] { Life<Traits>::end(); });
  }

  static puone_status describe(puone_driver_info* out) {
    return guarded("describe", [=] {
      constexpr const Description& own = Traits::kDescription;
      const bool has_kernels = Traits::hasKernels();
      fillStruct(
          out,
          puone_driver_info{
              .struct_size = 0,
              .kernel_set_version = has_kernels ? PUONE_KERNEL_SET_VERSION : 0,
              .name = own.name,
              .vendor = own.vendor,
              .version = own.version,
              .capabilities = own.capabilities | (has_kernels ? uint64_t{PUONE_CAP_KERNELS} : 0)});
    });
  }

  // ---- device ----

  static puone_status deviceCount(int32_t* out) {
    return entry("device_count", [=](Driver& d) { *out = d.count(); });
  }

  static puone_status deviceProperties(int32_t device, puone_device_properties* out) {
    return entry("device_properties", [=](Driver& d) { fillStruct(out, d.properties(device)); });
  }

  static puone_status deviceMemoryInfo(
      int32_t device, uint64_t* free_bytes, uint64_t* total_bytes) {
    return entry(
        "device_memory_info", [=](Driver& d) { d.memoryInfo(device, free_bytes, total_bytes); });
  }

  static puone_status deviceSynchronize(int32_t device) {
    return entry("device_synchronize", [=](Driver& d) { d.synchronizeDevice(device); });
  }

  static puone_status streamPriorityRange(int32_t device, int32_t* least, int32_t* greatest) {
    return entry(
        "stream_priority_range", [=](Driver& d) { d.priorityRange(device, least, greatest); });
  }

  static puone_status deviceCanAccessPeer(int32_t device, int32_t peer, int32_t* out) {
    return entry(
        "device_can_access_peer", [=](Driver& d) { *out = d.canAccessPeer(device, peer); });
  }

  // ---- memory ----

  static puone_status allocate(int32_t device, size_t bytes, void** out) {
    return entry("malloc", [=](Driver& d) { *out = d.allocate(device, bytes); });
  }

  static puone_status release(void* pointer) {
    return entry("free", [=](Driver& d) {
      if (pointer != nullptr) d.release(pointer);
    });
  }

  static puone_status allocateHost(size_t bytes, void** out) {
    return entry("host_malloc", [=](Driver& d) { *out = d.allocateHost(bytes); });
  }

  static puone_status releaseHost(void* pointer) {
    return entry("host_free", [=](Driver& d) {
      if (pointer != nullptr) d.releaseHost(pointer);
    });
  }

  static puone_status pointerAttributes(const void* pointer, puone_pointer_attributes* out) {
    return entry("pointer_attributes", [=](Driver& d) { fillStruct(out, d.attributes(pointer)); });
  }

  static puone_status memcpyAsync(
      void* dst, const void* src, size_t bytes, puone_memcpy_kind kind, puone_stream stream) {
    return entry("memcpy_async", [=](Driver& d) { d.copy(dst, src, bytes, kind, stream); });
  }

  static puone_status memsetAsync(void* dst, int32_t value, size_t bytes, puone_stream stream) {
    return entry("memset_async", [=](Driver& d) { d.set(dst, value, bytes, stream); });
  }

  // ---- stream ----

  static puone_status streamCreate(int32_t device, int32_t priority, puone_stream* out) {
    return entry("stream_create", [=](Driver& d) { *out = d.createStream(device, priority); });
  }

  static puone_status streamFromNative(int32_t device, void* native, puone_stream* out) {
    constexpr auto name = "stream_from_native";
    if constexpr ((Traits::kDescription.capabilities & PUONE_CAP_EXTERNAL_STREAMS) != 0) {
      return entry(name, [=](Driver& d) { *out = d.wrapStream(device, native); });
    } else {
      return guarded(name, [] { fail(PUONE_UNSUPPORTED, "this driver wraps no native streams"); });
    }
  }

  static puone_status streamDestroy(puone_stream stream) {
    return entry("stream_destroy", [=](Driver& d) {
      if (stream != nullptr) d.destroyStream(stream);
    });
  }

  static puone_status streamQuery(puone_stream stream) {
    return entry("stream_query", [=](Driver& d) { return d.queryStream(stream); });
  }

  static puone_status streamSynchronize(puone_stream stream) {
    return entry("stream_synchronize", [=](Driver& d) { d.synchronizeStream(stream); });
  }

  static puone_status streamWaitEvent(puone_stream stream, puone_event event) {
    return entry("stream_wait_event", [=](Driver& d) { d.waitEvent(stream, event); });
  }

  static puone_status streamHostFunc(puone_stream stream, puone_host_func fn, void* user_data) {
    return entry("stream_host_func", [=](Driver& d) { d.hostFunction(stream, fn, user_data); });
  }

  static puone_status streamNativeHandle(puone_stream stream, void** out) {
    return entry("stream_native_handle", [=](Driver& d) { *out = d.nativeStream(stream); });
  }

  // ---- event ----

  static puone_status eventCreate(int32_t device, uint32_t flags, puone_event* out) {
    return entry("event_create", [=](Driver& d) { *out = d.createEvent(device, flags); });
  }

  static puone_status eventDestroy(puone_event event) {
    return entry("event_destroy", [=](Driver& d) {
      if (event != nullptr) d.destroyEvent(event);
    });
  }

  static puone_status eventRecord(puone_event event, puone_stream stream) {
    return entry("event_record", [=](Driver& d) { d.record(event, stream); });
  }

  static puone_status eventQuery(puone_event event) {
    return entry("event_query", [=](Driver& d) { return d.queryEvent(event); });
  }

  static puone_status eventSynchronize(puone_event event) {
    return entry("event_synchronize", [=](Driver& d) { d.synchronizeEvent(event); });
  }

  static puone_status eventElapsedMs(puone_event start, puone_event end, float* out) {
    return entry("event_elapsed_ms", [=](Driver& d) { return d.elapsed(start, end, out); });
  }

  // ---- kernel ----

  static puone_status kernelFind(const char* name, puone_kernel_info* info, puone_kernel* out) {
    return kernelEntry("kernel_find", [=](Driver& d) {
      puone_kernel_info found{};
      const puone_kernel kernel = d.findKernel(name, &found);
      if (info != nullptr) fillStruct(info, found);
      *out = kernel;
    });
  }

  static puone_status kernelLaunch(
      puone_kernel kernel,
      const void* args,
      size_t /*bytes*/,
      puone_stream stream,
      const puone_launch_context* context) {
    return kernelEntry(
        "kernel_launch", [=](Driver& d) { d.launch(kernel, args, stream, context); });
  }

  // ---- extension ----

  static puone_status getExtension(const char* name, uint32_t min_version, const void** out) {
    return guarded("get_extension", [=] {
      for (const Extension& extension : Traits::extensions()) {
        if (extension.name != name || extension.version < min_version) continue;
        if (const char* reason = extension.missing != nullptr ? extension.missing() : nullptr) {
          fail(PUONE_UNSUPPORTED, "extension %.100s: %s", name, reason);
        }
        *out = extension.table;
        return;
      }
      fail(PUONE_UNSUPPORTED, "no extension %.100s of version %u or newer", name, min_version);
    });
  }

  static constexpr puone_hal_api kTable = {
      .struct_size = sizeof(puone_hal_api),
      .abi_major = PUONE_HAL_ABI_MAJOR,
      .abi_minor = PUONE_HAL_ABI_MINOR,
      .init = init,
      .shutdown = shutdown,
      .describe = describe,
      .last_error_message = lastError,
      .device_count = deviceCount,
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
      .stream_from_native = streamFromNative,
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
};

} // namespace puone
