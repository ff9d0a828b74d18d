/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The template driver: every entry is there and does nothing. Start yours from a copy; README.md
 * beside this file says in which order to fill it in.
 *
 * Loading it is safe: it has no device, so is_available() is False and nothing throws. An entry
 * that is not implemented returns UNSUPPORTED with a message, without side effects, and describe()
 * does not declare its capability: the two must change together. Arguments need no checks: the
 * validation layer (hal/validation.h) is around every driver that runs with PUONE_VALIDATE=1.
 */
#include <stdio.h>
#include <string.h>

#include "hal/hal.h"

/* last_error_message() is per thread. */
static __thread char last_error[128] = "";

static puone_status unsupported(const char* entry) {
  snprintf(last_error, sizeof last_error, "%s: the template driver does not implement this", entry);
  return PUONE_UNSUPPORTED;
}

static puone_status no_device(const char* entry, int32_t device) {
  snprintf(last_error, sizeof last_error, "%s: device %d is not in [0, 0)", entry, (int)device);
  return PUONE_INVALID_DEVICE;
}

/* ---- step 1: driver ---- */

static puone_status driver_init(void) {
  return PUONE_OK;
}
static puone_status driver_shutdown(void) {
  return PUONE_OK;
}

static puone_status describe(puone_driver_info* out) {
  puone_driver_info own = {
      .struct_size = out->struct_size, /* the caller's; fill no more than it covers */
      .kernel_set_version = 0,         /* PUONE_KERNEL_SET_VERSION once there are kernels */
      .name = "template",
      .vendor = "your company",
      .version = "0.1.0",
      .capabilities = 0, /* grows with the steps below */
  };
  memcpy(out, &own, out->struct_size < sizeof own ? out->struct_size : sizeof own);
  return PUONE_OK;
}

static const char* last_error_message(void) {
  return last_error;
}

/* ---- step 2: device ---- */

static puone_status device_count(int32_t* out) {
  *out = 0;
  return PUONE_OK;
}

static puone_status device_properties(int32_t device, puone_device_properties* out) {
  (void)out;
  return no_device("device_properties", device); /* step 4: PUONE_CAP_MEMORY */
}

static puone_status device_memory_info(
    int32_t device, uint64_t* free_bytes, uint64_t* total_bytes) {
  (void)free_bytes, (void)total_bytes;
  return no_device("device_memory_info", device); /* step 4: PUONE_CAP_MEMORY */
}

static puone_status device_synchronize(int32_t device) {
  return no_device("device_synchronize", device); /* step 3: PUONE_CAP_STREAMS */
}

static puone_status stream_priority_range(int32_t device, int32_t* least, int32_t* greatest) {
  (void)least, (void)greatest;
  return no_device("stream_priority_range", device); /* step 3: PUONE_CAP_STREAM_PRIORITIES */
}

static puone_status device_can_access_peer(int32_t device, int32_t peer, int32_t* out) {
  (void)peer, (void)out;
  return no_device("device_can_access_peer", device);
}

/* ---- step 3: streams (PUONE_CAP_STREAMS, PUONE_CAP_HOST_FUNC) ---- */

static puone_status stream_create(int32_t device, int32_t priority, puone_stream* out) {
  (void)device, (void)priority, (void)out;
  return unsupported("stream_create");
}

static puone_status stream_from_native(int32_t device, void* native, puone_stream* out) {
  (void)device, (void)native, (void)out;
  return unsupported("stream_from_native"); /* PUONE_CAP_EXTERNAL_STREAMS */
}

static puone_status stream_destroy(puone_stream stream) {
  return stream == NULL ? PUONE_OK : unsupported("stream_destroy");
}

static puone_status stream_query(puone_stream stream) {
  (void)stream;
  return unsupported("stream_query");
}

static puone_status stream_synchronize(puone_stream stream) {
  (void)stream;
  return unsupported("stream_synchronize");
}

static puone_status stream_wait_event(puone_stream stream, puone_event event) {
  (void)stream, (void)event;
  return unsupported("stream_wait_event"); /* step 5: PUONE_CAP_EVENTS */
}

static puone_status stream_host_func(puone_stream stream, puone_host_func fn, void* user_data) {
  (void)stream, (void)fn, (void)user_data;
  return unsupported("stream_host_func");
}

static puone_status stream_native_handle(puone_stream stream, void** out) {
  (void)stream, (void)out;
  return unsupported("stream_native_handle");
}

/* ---- step 4: memory (PUONE_CAP_MEMORY, PUONE_CAP_PINNED_MEMORY) ---- */

static puone_status memory_malloc(int32_t device, size_t bytes, void** out) {
  (void)device, (void)bytes, (void)out;
  return unsupported("malloc");
}

static puone_status memory_free(void* ptr) {
  return ptr == NULL ? PUONE_OK : unsupported("free");
}

static puone_status host_malloc(size_t bytes, void** out) {
  (void)bytes, (void)out;
  return unsupported("host_malloc");
}

static puone_status host_free(void* ptr) {
  return ptr == NULL ? PUONE_OK : unsupported("host_free");
}

static puone_status pointer_attributes(const void* ptr, puone_pointer_attributes* out) {
  (void)ptr, (void)out;
  return unsupported("pointer_attributes");
}

static puone_status memcpy_async(
    void* dst, const void* src, size_t bytes, puone_memcpy_kind kind, puone_stream stream) {
  (void)dst, (void)src, (void)bytes, (void)kind, (void)stream;
  return unsupported("memcpy_async");
}

static puone_status memset_async(void* dst, int32_t value, size_t bytes, puone_stream stream) {
  (void)dst, (void)value, (void)bytes, (void)stream;
  return unsupported("memset_async");
}

/* ---- step 5: events (PUONE_CAP_EVENTS, PUONE_CAP_EVENT_TIMING) ---- */

static puone_status event_create(int32_t device, uint32_t flags, puone_event* out) {
  (void)device, (void)flags, (void)out;
  return unsupported("event_create");
}

static puone_status event_destroy(puone_event event) {
  return event == NULL ? PUONE_OK : unsupported("event_destroy");
}

static puone_status event_record(puone_event event, puone_stream stream) {
  (void)event, (void)stream;
  return unsupported("event_record");
}

static puone_status event_query(puone_event event) {
  (void)event;
  return unsupported("event_query");
}

static puone_status event_synchronize(puone_event event) {
  (void)event;
  return unsupported("event_synchronize");
}

static puone_status event_elapsed_ms(puone_event start, puone_event end, float* out) {
  (void)start, (void)end, (void)out;
  return unsupported("event_elapsed_ms");
}

/* ---- step 6: kernels (PUONE_CAP_KERNELS) ---- */

static puone_status kernel_find(const char* name, puone_kernel_info* info, puone_kernel* out) {
  (void)name, (void)info, (void)out;
  return unsupported("kernel_find");
}

static puone_status kernel_launch(
    puone_kernel kernel,
    const void* args,
    size_t bytes,
    puone_stream stream,
    const puone_launch_context* context) {
  (void)kernel, (void)args, (void)bytes, (void)stream, (void)context;
  return unsupported("kernel_launch");
}

/* ---- step 7: extensions ---- */

static puone_status get_extension(const char* name, uint32_t min_version, const void** out) {
  (void)min_version, (void)out;
  snprintf(last_error, sizeof last_error, "get_extension: there is no extension %.64s", name);
  return PUONE_UNSUPPORTED;
}

static const puone_hal_api table = {
    .struct_size = sizeof(puone_hal_api),
    .abi_major = PUONE_HAL_ABI_MAJOR,
    .abi_minor = PUONE_HAL_ABI_MINOR,
    .init = driver_init,
    .shutdown = driver_shutdown,
    .describe = describe,
    .last_error_message = last_error_message,
    .device_count = device_count,
    .device_properties = device_properties,
    .device_memory_info = device_memory_info,
    .device_synchronize = device_synchronize,
    .stream_priority_range = stream_priority_range,
    .device_can_access_peer = device_can_access_peer,
    .malloc = memory_malloc,
    .free = memory_free,
    .host_malloc = host_malloc,
    .host_free = host_free,
    .pointer_attributes = pointer_attributes,
    .memcpy_async = memcpy_async,
    .memset_async = memset_async,
    .stream_create = stream_create,
    .stream_from_native = stream_from_native,
    .stream_destroy = stream_destroy,
    .stream_query = stream_query,
    .stream_synchronize = stream_synchronize,
    .stream_wait_event = stream_wait_event,
    .stream_host_func = stream_host_func,
    .stream_native_handle = stream_native_handle,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_query = event_query,
    .event_synchronize = event_synchronize,
    .event_elapsed_ms = event_elapsed_ms,
    .kernel_find = kernel_find,
    .kernel_launch = kernel_launch,
    .get_extension = get_extension,
};

__attribute__((visibility("default"))) puone_status
puone_hal_get(uint32_t abi_major, const puone_hal_api** out) {
  if (out == NULL) return PUONE_INVALID_ARGUMENT;
  if (abi_major != PUONE_HAL_ABI_MAJOR) return unsupported("puone_hal_get (ABI)");
  *out = &table;
  return PUONE_OK;
}
