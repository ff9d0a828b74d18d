// SPDX-License-Identifier: BSD-3-Clause
#include "hal/validation.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hal/entries.h"
#include "hal/validation/checked_entries.h"
#include "hal/validation/live_objects.h"
#include "hal/validation/refusals.h"
#include "hal/validation/state.h"

namespace puone {
namespace validation {
namespace {

/// This layer's entries.
constexpr puone_hal_api kChecked = {
    .struct_size = sizeof(puone_hal_api),
    .abi_major = PUONE_HAL_ABI_MAJOR,
    .abi_minor = PUONE_HAL_ABI_MINOR,
    .init = init,
    .shutdown = shutdown,
    .describe = describe,
    .last_error_message = lastErrorMessage,
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

constexpr bool everyEntryIsChecked() {
  bool result = true;
  forEachEntry(
      [&](const char*, auto entry, uint64_t) { result = result && kChecked.*entry != nullptr; });
  return result;
}
static_assert(everyEntryIsChecked());

/// The capabilities that the driver declares.
uint64_t declared(const puone_hal_api& inner) {
  puone_driver_info info{};
  info.struct_size = sizeof info;
  if (inner.describe == nullptr || inner.describe(&info) != PUONE_OK) return 0;
  return info.capabilities;
}

puone_hal_api wrapped(const puone_hal_api& inner) {
  puone_hal_api table{};
  const size_t known = std::min<size_t>(inner.struct_size, sizeof table);
  std::memcpy(&table, &inner, known);
  table.struct_size = static_cast<uint32_t>(known);
  const auto wrap = [&](auto entry) {
    if (table.*entry != nullptr) table.*entry = kChecked.*entry;
  };
  // An entry that no capability promises is the driver's to refuse: UNSUPPORTED comes first.
  forEachEntry([&](const char*, auto entry, uint64_t capability) {
    if (has(capability)) wrap(entry);
  });
  forEachDeviceEntry([&](const char*, auto entry, uint64_t) { wrap(entry); });
  wrap(&puone_hal_api::last_error_message);
  wrap(&puone_hal_api::get_extension);
  return table;
}

} // namespace
} // namespace validation

const puone_hal_api* validated(const puone_hal_api& inner, bool only_own_memory) {
  static const puone_hal_api* const table = [&] {
    validation::driver = &inner;
    validation::capabilities = validation::declared(inner);
    validation::knows_own_memory_only = only_own_memory;
    validation::live();
    return new puone_hal_api(validation::wrapped(inner)); // leaked: it lives as long as the process
  }();
  return validation::driver == &inner ? table : nullptr;
}

} // namespace puone
