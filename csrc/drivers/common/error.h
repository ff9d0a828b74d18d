// SPDX-License-Identifier: BSD-3-Clause
// Failures inside a driver are thrown as Error. The table's entries turn them into a puone_status
// and a per-thread text; no exception leaves the driver.
#pragma once

#include <string>

#include "hal/hal.h"

namespace puone {

struct Error {
  puone_status status;
  std::string text;
  uint64_t origin = 0; // of the work that failed late; see hal/origin.h
};

/// Throws an Error with a printf-style text.
[[noreturn]] void fail(puone_status status, const char* format, ...)
    __attribute__((format(printf, 2, 3)));

/// printf into a string.
std::string format(const char* format, ...) __attribute__((format(printf, 1, 2)));

/// "1.50 GiB", for messages.
std::string humanBytes(uint64_t bytes);

/// The calling thread's last error text, as last_error_message() returns it.
const char* lastError() noexcept;
void setLastError(const char* entry, const std::string& text, uint64_t origin = 0) noexcept;
/// The origin of the calling thread's last error, 0 if it had none.
uint64_t lastErrorOrigin() noexcept;

} // namespace puone
