// SPDX-License-Identifier: BSD-3-Clause
// The entries of the driver's table as data, each with the capability that promises it.
#pragma once

#include <cstdint>

#include "hal/hal.h"

namespace puone {

#define ENTRY(name, capability) f(#name, &puone_hal_api::name, uint64_t{capability})

/// The part of forEachEntry() that a driver may have without the capability that promises it.
template <class F>
constexpr void forEachDeviceEntry(const F& f) {
  ENTRY(device_properties, PUONE_CAP_MEMORY);
  ENTRY(device_memory_info, PUONE_CAP_MEMORY);
  ENTRY(device_synchronize, PUONE_CAP_STREAMS);
  ENTRY(stream_priority_range, PUONE_CAP_STREAM_PRIORITIES);
  ENTRY(device_can_access_peer, PUONE_CAP_PEER_ACCESS);
}

/// Calls f(name, member, capability) for each entry that returns a status, except get_extension():
/// `&puone_hal_api::member` is the entry. describe() promises it by the capability; 0: always.
template <class F>
constexpr void forEachEntry(const F& f) {
  ENTRY(init, 0);
  ENTRY(shutdown, 0);
  ENTRY(describe, 0);
  ENTRY(device_count, 0);
  forEachDeviceEntry(f);
  ENTRY(malloc, PUONE_CAP_MEMORY);
  ENTRY(free, PUONE_CAP_MEMORY);
  ENTRY(host_malloc, PUONE_CAP_PINNED_MEMORY);
  ENTRY(host_free, PUONE_CAP_PINNED_MEMORY);
  ENTRY(pointer_attributes, PUONE_CAP_MEMORY);
  ENTRY(memcpy_async, PUONE_CAP_MEMORY);
  ENTRY(memset_async, PUONE_CAP_MEMORY);
  ENTRY(stream_create, PUONE_CAP_STREAMS);
  ENTRY(stream_from_native, PUONE_CAP_EXTERNAL_STREAMS);
  ENTRY(stream_destroy, PUONE_CAP_STREAMS);
  ENTRY(stream_query, PUONE_CAP_STREAMS);
  ENTRY(stream_synchronize, PUONE_CAP_STREAMS);
  ENTRY(stream_wait_event, PUONE_CAP_EVENTS);
  ENTRY(stream_host_func, PUONE_CAP_HOST_FUNC);
  ENTRY(stream_native_handle, PUONE_CAP_STREAMS);
  ENTRY(event_create, PUONE_CAP_EVENTS);
  ENTRY(event_destroy, PUONE_CAP_EVENTS);
  ENTRY(event_record, PUONE_CAP_EVENTS);
  ENTRY(event_query, PUONE_CAP_EVENTS);
  ENTRY(event_synchronize, PUONE_CAP_EVENTS);
  ENTRY(event_elapsed_ms, PUONE_CAP_EVENT_TIMING);
  ENTRY(kernel_find, PUONE_CAP_KERNELS);
  ENTRY(kernel_launch, PUONE_CAP_KERNELS);
}

#undef ENTRY

/// Whether a driver with these capabilities promises an entry of this capability.
constexpr bool isPromised(uint64_t capabilities, uint64_t capability) {
  return (capabilities & capability) == capability;
}

} // namespace puone
