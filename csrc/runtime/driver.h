// SPDX-License-Identifier: BSD-3-Clause
// The loaded driver, as the runtime sees it: one table per process, and the mapping from HAL status
// codes to the exceptions PyTorch users know.
#pragma once

#include <c10/macros/Macros.h>

#include <string>

#include "hal/hal.h"

namespace puone {

// Which driver is in use and why not, if none. Chosen on first use by PUONE_DRIVER (`sim`, `cuda` or
// a path); unset: `cuda` if it has a device, else `sim`. Never throws: a driver that cannot be loaded
// is an available() == false with the reason in `error`. Thread-safe.
struct DriverState {
  bool loaded = false;
  int device_count = 0;
  std::string name;
  std::string path;
  std::string error;
  uint64_t capabilities = 0;

  bool available() const noexcept {
    return device_count > 0;
  }
};

const DriverState& driverState() noexcept;

// The driver's table. Entries the driver lacks return PUONE_UNSUPPORTED, none is NULL.
// Throws c10::Error with the load failure when there is no driver.
const puone_hal_api& hal();

// Stops the driver: called once at interpreter exit, after which the runtime frees nothing more.
void shutdownDriver() noexcept;

// True once shutdownDriver() has run; deleters that run later must not touch the device.
bool driverIsDown() noexcept;

// True in a child forked after this process had used the device; every device call then throws.
bool inBadFork() noexcept;

// Throws if inBadFork(), and marks the process as a user of the device otherwise.
void enterDevice();

namespace detail {
// Throws the exception for a failed call: c10::OutOfMemoryError for OUT_OF_MEMORY,
// c10::NotImplementedError for UNSUPPORTED, c10::AcceleratorError for DEVICE_LOST and asynchronous
// errors, c10::ValueError / c10::Error otherwise. `call` names the HAL entry.
[[noreturn]] void throwStatus(puone_status status, const char* call);
} // namespace detail

} // namespace puone

// Evaluates a HAL call and throws unless it returns PUONE_OK.
#define PUONE_CHECK(call)                                   \
  do {                                                      \
    const puone_status puone_status_ = (call);              \
    if (C10_UNLIKELY(puone_status_ != PUONE_OK)) {          \
      ::puone::detail::throwStatus(puone_status_, #call);   \
    }                                                       \
  } while (false)
