// SPDX-License-Identifier: BSD-3-Clause
// The loaded driver, as the runtime sees it: one table per process, and the mapping from HAL status
// codes to the exceptions PyTorch users know.
#pragma once

#include <c10/macros/Macros.h>

#include <string>

#include "hal/hal.h"

namespace puone {

// Which driver is in use and why not, if none. Chosen on first use by PUONE_DRIVER: the name of a
// bundled driver or a path; unset: the first with a device among those that the build prefers
// (cmake/backend.cmake). Never throws: a driver that cannot be loaded is an available() == false
// with the reason in `error`. Thread-safe.
struct DriverState {
  bool loaded = false;       // whether the driver's table is there, perhaps without a device
  int device_count = 0;      // usable devices
  std::string name;          // as the driver describes itself: "sim"
  std::string path;          // of the library
  std::string error;         // why there is no device; empty if there is one
  std::string passed_over;   // why a driver that is preferred was there and not taken
  uint64_t capabilities = 0; // bits of puone_capability; 0 while nothing is loaded

  // Whether there is a device.
  bool available() const noexcept {
    return device_count > 0;
  }
};

// The state of this process, which never changes once it is known. Loads the driver on first use.
const DriverState& driverState() noexcept;

// The driver's table. Entries the driver lacks return PUONE_UNSUPPORTED, none is NULL. Throws
// c10::Error when there is no device, after shutdown, and in a bad fork. Asking for the table
// counts as using the device; driverState() does not.
const puone_hal_api& hal();

// The table of the loaded driver, which may have no device: for what needs none, such as its
// compiler. Throws c10::Error if no driver is loaded, after shutdown, and in a bad fork. Does not
// count as use.
const puone_hal_api& halWithoutDevice();

// The same as hal(), but NULL where that throws: for destructors and other functions that must not
// throw.
const puone_hal_api* halOrNull() noexcept;

// What the result of the HAL's stream_query or event_query says: true if the work is done, false if
// it is pending. Throws on anything else. `entry` names the HAL entry.
bool isDone(puone_status status, const char* entry);

// Stops the driver: called once at interpreter exit, after which the runtime frees nothing more.
void shutdownDriver() noexcept;

// Chooses the driver by the environment of now: a child that was forked before a device was used
// may want another driver, or other options of it. Throws c10::Error if a device is or was in use,
// in a bad fork and after shutdown. No other thread may use this backend meanwhile.
void chooseDriverAgain();

// True once shutdownDriver() has run; deleters that run later must not touch the device.
bool driverIsDown() noexcept;

// True in a child forked after this process had called hal(); hal() then throws.
bool inBadFork() noexcept;

namespace detail {
// Throws the exception for a failed call: c10::OutOfMemoryError for OUT_OF_MEMORY,
// c10::NotImplementedError for UNSUPPORTED, c10::AcceleratorError for DEVICE_LOST and asynchronous
// errors, c10::Error otherwise. `call` is the HAL entry's name or the call's text.
[[noreturn]] void throwStatus(puone_status status, const char* call);
} // namespace detail

} // namespace puone

// Throws unless `status`, the result of the HAL entry `entry`, is PUONE_OK.
#define PUONE_CHECK_STATUS(status, entry)                 \
  do {                                                    \
    const puone_status puone_status_ = (status);          \
    if (C10_UNLIKELY(puone_status_ != PUONE_OK)) {        \
      ::puone::detail::throwStatus(puone_status_, entry); \
    }                                                     \
  } while (false)

// Evaluates a HAL call, `hal().entry(...)`, and throws unless it returns PUONE_OK.
#define PUONE_CHECK(call) PUONE_CHECK_STATUS(call, #call)
