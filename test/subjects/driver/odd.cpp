// SPDX-License-Identifier: BSD-3-Clause
// Oddities of a driver that are within the contract of hal.h, or that the contract lets it lack.
#include <cstdint>
#include <mutex>
#include <set>
#include <string_view>

#include "hal/validation.h"
#include "liar.h"

namespace puone::liar {
namespace {

// Before and behind each block: what the caller sees is aligned to 256 bytes and to nothing more.
constexpr size_t kLead = 256;
constexpr size_t kTail = 65536 + 768;

char* shifted(void* block, ptrdiff_t bytes) {
  return static_cast<char*>(block) + bytes;
}

void allocationsArePadded(puone_hal_api& table) {
  table.malloc = [](int32_t device, size_t bytes, void** out) {
    if (bytes == 0 || bytes > SIZE_MAX - kLead - kTail) return truth().malloc(device, bytes, out);
    const puone_status status = truth().malloc(device, kLead + bytes + kTail, out);
    if (status == PUONE_OK) *out = shifted(*out, kLead);
    return status;
  };
  table.free = [](void* block) {
    return truth().free(block == nullptr ? nullptr : shifted(block, -ptrdiff_t{kLead}));
  };
  table.pointer_attributes = [](const void* pointer, puone_pointer_attributes* out) {
    const puone_status status = truth().pointer_attributes(pointer, out);
    if (status != PUONE_OK || out->kind != PUONE_MEMORY_DEVICE) return status;
    out->base = shifted(out->base, kLead);
    out->size -= kLead + kTail;
    const auto offset =
        reinterpret_cast<uintptr_t>(pointer) - reinterpret_cast<uintptr_t>(out->base);
    if (offset >= out->size)
      *out = {out->struct_size, PUONE_MEMORY_UNREGISTERED, -1, 0, nullptr, 0};
    return status;
  };
}

// Lets a driver no longer declare these capabilities.
template <uint64_t kBits>
void withdraw(puone_hal_api& table) {
  table.describe = [](puone_driver_info* out) {
    const puone_status status = truth().describe(out);
    if (status == PUONE_OK) out->capabilities &= ~kBits;
    return status;
  };
}

// Devices that have the one stream which their runtime needs.
std::mutex mutex;
std::set<int32_t> with_stream;

void oneStream(puone_hal_api& table) {
  table.stream_create = [](int32_t device, int32_t priority, puone_stream* out) {
    std::lock_guard<std::mutex> lock(mutex);
    if (!with_stream.insert(device).second) return PUONE_UNSUPPORTED;
    return truth().stream_create(device, priority, out);
  };
  table.stream_priority_range = [](int32_t, int32_t* least, int32_t* greatest) {
    *least = *greatest = 0;
    return PUONE_OK;
  };
  withdraw<PUONE_CAP_STREAM_PRIORITIES>(table);
}

// A driver whose author has not written a kernel yet.
void noKernels(puone_hal_api& table) {
  table.kernel_find = nullptr;
  table.kernel_launch = nullptr;
  withdraw<PUONE_CAP_KERNELS>(table);
}

// A driver whose author has begun with the kernels that move data.
void copiesAndFills(puone_hal_api& table) {
  table.kernel_find = [](const char* name, puone_kernel_info* info, puone_kernel* out) {
    for (const char* kernel : {"copy", "copy_bits", "fill"}) {
      if (name == nullptr || out == nullptr || std::string_view(name) == kernel) {
        return truth().kernel_find(name, info, out);
      }
    }
    return PUONE_UNSUPPORTED;
  };
}

// A native runtime shared with other libraries, as far as a process without one can tell: its
// streams are the wrapped driver's, its default stream is the calling thread itself.
constexpr intptr_t kDefaultStream = 1;
constexpr int32_t kFirstDeviceId = 4;
constexpr int32_t kNativeDeviceType = 2;

// The stream's device is the one that accepts it.
puone_status waitOnNative(void* native, puone_event event) {
  int32_t devices = 0;
  puone_status status = truth().device_count(&devices);
  for (int32_t device = 0; status == PUONE_OK && device < devices; ++device) {
    puone_stream stream = nullptr;
    if (truth().stream_from_native(device, native, &stream) != PUONE_OK) continue;
    status = truth().stream_wait_event(stream, event);
    truth().stream_destroy(stream);
    return status;
  }
  return status == PUONE_OK ? PUONE_INVALID_ARGUMENT : status;
}

const puone_dlpack_api kShared = {
    .struct_size = sizeof(puone_dlpack_api),
    .version = PUONE_DLPACK_VERSION,
    .device_type = kNativeDeviceType,
    .reserved = 0,
    .default_stream = reinterpret_cast<void*>(kDefaultStream),
    .device_id =
        [](int32_t device, int32_t* out) {
          *out = kFirstDeviceId + device;
          return PUONE_OK;
        },
    .native_stream_wait_event =
        [](void* native_stream, puone_event event) {
          if (native_stream == nullptr) return PUONE_INVALID_ARGUMENT;
          if (native_stream == kShared.default_stream) return truth().event_synchronize(event);
          return waitOnNative(native_stream, event);
        },
};

puone_dlpack_api forgetful = kShared;

template <const puone_dlpack_api& kTable>
void offer(puone_hal_api& table) {
  table.get_extension = [](const char* name, uint32_t min_version, const void** out) {
    if (out == nullptr || std::string_view(name) != PUONE_DLPACK_EXTENSION ||
        min_version > PUONE_DLPACK_VERSION) {
      return truth().get_extension(name, min_version, out);
    }
    *out = &kTable;
    return PUONE_OK;
  };
}

void nativeRuntime(puone_hal_api& table) {
  offer<kShared>(table);
}

// Nobody waits: not within the contract, so that what notices it can be tested.
void forgetfulRuntime(puone_hal_api& table) {
  forgetful.native_stream_wait_event = [](void*, puone_event) { return PUONE_OK; };
  offer<forgetful>(table);
}

// The validation layer around a driver, for suites that load the library themselves.
void validation(puone_hal_api& table) {
  table = *validated(truth());
}

// Devices that cannot reach each other, and no entry to ask whether they can.
void noPeers(puone_hal_api& table) {
  table.device_can_access_peer = nullptr;
  withdraw<PUONE_CAP_PEER_ACCESS>(table);
}

// The validation layer around a driver of pinned memory and kernels alone: it lacks the entries by
// which the layer knows a block, and a text for its errors.
void validationOfFewEntries(puone_hal_api& table) {
  static puone_hal_api few = truth();
  few.pointer_attributes = nullptr;
  few.device_can_access_peer = nullptr;
  few.last_error_message = nullptr;
  withdraw<PUONE_CAP_MEMORY | PUONE_CAP_PEER_ACCESS | PUONE_CAP_VALIDATION>(few);
  table = *validated(few);
}

// The validation layer around a driver that takes memory of another library for its own. No process
// has anything at these addresses.
constexpr uintptr_t kForeignMemory = uintptr_t{1} << 56;
constexpr size_t kForeignBytes = 4096;

void validationOfForeignMemory(puone_hal_api& table) {
  static puone_hal_api native = truth();
  offer<kShared>(native);
  native.pointer_attributes = [](const void* pointer, puone_pointer_attributes* out) {
    if (reinterpret_cast<uintptr_t>(pointer) - kForeignMemory >= kForeignBytes) {
      return truth().pointer_attributes(pointer, out);
    }
    *out = {out->struct_size, PUONE_MEMORY_DEVICE, 0, 0, const_cast<void*>(pointer), 0};
    return PUONE_OK;
  };
  table = *validated(native);
}

// A device whose events can be waited for in sleep only.
void sleepingEvents(puone_hal_api& table) {
  table.event_create = [](int32_t device, uint32_t flags, puone_event* out) {
    return (flags & PUONE_EVENT_BLOCKING_SYNC) == 0 ? PUONE_UNSUPPORTED
                                                    : truth().event_create(device, flags, out);
  };
}

constexpr Lie kOddities[] = {
    {"none", [](puone_hal_api&) {}},
    {"padded", allocationsArePadded},
    {"one_stream", oneStream},
    {"no_kernels", noKernels},
    {"copies_and_fills", copiesAndFills},
    {"native_runtime", nativeRuntime},
    {"forgetful_runtime", forgetfulRuntime},
    {"no_peers", noPeers},
    {"validation", validation},
    {"validation_of_few_entries", validationOfFewEntries},
    {"validation_of_foreign_memory", validationOfForeignMemory},
    {"sleeping_events", sleepingEvents},
    {"no_extensions", [](puone_hal_api& table) { table.get_extension = nullptr; }},
};

} // namespace

std::span<const Lie> lies() {
  return kOddities;
}

} // namespace puone::liar
