// SPDX-License-Identifier: BSD-3-Clause
// The layer's entries of the driver's table, by the file that has them. Each refuses misuse, or
// calls the driver's entry. hal.h says what they do.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hal/hal.h"

namespace puone::validation {

// driver.cpp
puone_status init();
puone_status shutdown();
puone_status describe(puone_driver_info* out);

// device.cpp
puone_status deviceCount(int32_t* out);
puone_status deviceProperties(int32_t device, puone_device_properties* out);
puone_status deviceMemoryInfo(int32_t device, uint64_t* free_bytes, uint64_t* total_bytes);
puone_status deviceSynchronize(int32_t device);
puone_status streamPriorityRange(int32_t device, int32_t* least, int32_t* greatest);
puone_status deviceCanAccessPeer(int32_t device, int32_t peer, int32_t* out);

// memory.cpp
puone_status allocate(int32_t device, size_t bytes, void** out);
puone_status release(void* pointer);
puone_status allocateHost(size_t bytes, void** out);
puone_status releaseHost(void* pointer);
puone_status pointerAttributes(const void* pointer, puone_pointer_attributes* out);
puone_status memcpyAsync(
    void* to, const void* from, size_t bytes, puone_memcpy_kind kind, puone_stream stream);
puone_status memsetAsync(void* to, int32_t value, size_t bytes, puone_stream stream);

// stream.cpp
puone_status streamCreate(int32_t device, int32_t priority, puone_stream* out);
puone_status streamFromNative(int32_t device, void* native, puone_stream* out);
puone_status streamDestroy(puone_stream stream);
puone_status streamQuery(puone_stream stream);
puone_status streamSynchronize(puone_stream stream);
puone_status streamWaitEvent(puone_stream stream, puone_event event);
puone_status streamHostFunc(puone_stream stream, puone_host_func function, void* user_data);
puone_status streamNativeHandle(puone_stream stream, void** out);

// event.cpp
puone_status eventCreate(int32_t device, uint32_t flags, puone_event* out);
puone_status eventDestroy(puone_event event);
puone_status eventRecord(puone_event event, puone_stream stream);
puone_status eventQuery(puone_event event);
puone_status eventSynchronize(puone_event event);
puone_status eventElapsedMs(puone_event start, puone_event end, float* out);

// kernel.cpp
puone_status kernelFind(const char* name, puone_kernel_info* info, puone_kernel* out);
puone_status kernelLaunch(
    puone_kernel kernel,
    const void* args,
    size_t bytes,
    puone_stream stream,
    const puone_launch_context* context);

// extensions.cpp
puone_status getExtension(const char* name, uint32_t min_version, const void** out);

} // namespace puone::validation
