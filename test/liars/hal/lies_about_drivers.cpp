// SPDX-License-Identifier: BSD-3-Clause
// Lies about the table as a whole: what it says about itself, beginning, ending, errors.
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "liar.h"

namespace puone::liar {

void tableForAnyAbi(puone_hal_api&) {
  symbol().accepts_any_abi = true;
}

void tableOfEachThread(puone_hal_api&) {
  symbol().copies_for_each_thread = true;
}

void tableIsTooShort(puone_hal_api& table) {
  table.struct_size = offsetof(puone_hal_api, kernel_find);
}

void capabilityIsHidden(puone_hal_api& table) {
  table.describe = [](puone_driver_info* out) {
    puone_status status = truth().describe(out);
    if (status == PUONE_OK) out->capabilities &= ~uint64_t{PUONE_CAP_EVENT_TIMING};
    return status;
  };
}

void nameIsForPeople(puone_hal_api& table) {
  table.describe = [](puone_driver_info* out) {
    puone_status status = truth().describe(out);
    if (status == PUONE_OK) out->name = "Simulated Accelerator";
    return status;
  };
}

void extensionsAreMissing(puone_hal_api& table) {
  table.get_extension = nullptr;
}

void secondInitFails(puone_hal_api& table) {
  table.init = [] {
    static std::atomic<bool> before{false};
    return before.exchange(true) ? PUONE_INTERNAL : truth().init();
  };
}

void countingStartsTheDevice(puone_hal_api& table) {
  table.device_count = [](int32_t* out) {
    puone_status status = truth().device_count(out);
    puone_stream stream = nullptr;
    if (status == PUONE_OK && truth().stream_create(0, 0, &stream) == PUONE_OK) {
      truth().stream_host_func(stream, [](void*) {}, nullptr);
      truth().stream_synchronize(stream);
      truth().stream_destroy(stream);
    }
    return status;
  };
}

void shutdownDoesNothing(puone_hal_api& table) {
  table.shutdown = [] { return PUONE_OK; };
}

void shutdownWaitsInChildren(puone_hal_api& table) {
  static pid_t owner = 0;
  owner = getpid();
  table.shutdown = [] {
    if (getpid() != owner) pause(); // for threads that a child does not have
    return truth().shutdown();
  };
}

void errorsHaveNoText(puone_hal_api& table) {
  table.last_error_message = [] { return ""; };
}

void failuresClearTheirResult(puone_hal_api& table) {
  table.malloc = [](int32_t device, size_t bytes, void** out) {
    puone_status status = truth().malloc(device, bytes, out);
    if (status != PUONE_OK && out != nullptr) *out = nullptr;
    return status;
  };
  table.device_memory_info = [](int32_t device, uint64_t* free_bytes, uint64_t* total_bytes) {
    puone_status status = truth().device_memory_info(device, free_bytes, total_bytes);
    if (status != PUONE_OK && free_bytes != nullptr) *free_bytes = 0;
    return status;
  };
}

void nullResultsCrash(puone_hal_api& table) {
  table.device_count = [](int32_t* out) {
    *out = 0;
    return truth().device_count(out);
  };
}

void structsAreOverrun(puone_hal_api& table) {
  table.device_properties = [](int32_t device, puone_device_properties* out) {
    puone_status status = truth().device_properties(device, out);
    if (status == PUONE_OK && out->struct_size > sizeof *out) {
      std::memset(out + 1, 0, out->struct_size - sizeof *out); // as if it were ours to clear
    }
    return status;
  };
}

void extensionVersionsAreIgnored(puone_hal_api& table) {
  table.get_extension = [](const char* name, uint32_t, const void** out) {
    return truth().get_extension(name, 0, out);
  };
}

} // namespace puone::liar
