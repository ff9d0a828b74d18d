// SPDX-License-Identifier: BSD-3-Clause
// The driver that a program of tests is linked with.
#pragma once

#include <cstdlib>
#include <string>

#include "check.h"
#include "hal/hal.h"

namespace puone::test {

inline const puone_hal_api& hal() {
  static const puone_hal_api* const table = [] {
    const puone_hal_api* found = nullptr;
    if (puone_hal_get(PUONE_HAL_ABI_MAJOR, &found) != PUONE_OK) std::abort();
    return found;
  }();
  return *table;
}

/// Fails the test unless `status` is OK, and says why it is not.
#define OK(call) ::puone::test::expectStatus((call), PUONE_OK, #call, __FILE__, __LINE__)
#define STATUS(call, expected) \
  ::puone::test::expectStatus((call), (expected), #call, __FILE__, __LINE__)
inline void expectStatus(
    puone_status actual, puone_status expected, const char* call, const char* file, int line) {
  if (actual == expected) return;
  report(
      file,
      line,
      std::string(call) + ": got " + std::to_string(actual) + ", expected " +
          std::to_string(expected) + ": " + hal().last_error_message());
}

/// Whether the calling thread's last error mentions `part`.
inline bool errorSays(const std::string& part) {
  const std::string text = hal().last_error_message();
  if (text.find(part) != std::string::npos) return true;
  report("last_error_message", 0, "\"" + text + "\" does not say \"" + part + "\"");
  return false;
}

} // namespace puone::test
