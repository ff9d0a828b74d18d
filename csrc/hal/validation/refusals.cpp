// SPDX-License-Identifier: BSD-3-Clause
#include "hal/validation/refusals.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "hal/validation/state.h"

namespace puone::validation {
namespace {

// The text of the calling thread's last refusal.
thread_local char refusal[512] = "";

const char* driversMessage() {
  return driver->last_error_message != nullptr ? driver->last_error_message() : "";
}

} // namespace

puone_status refuse(puone_status status, const char* entry, const char* format, ...) {
  const int used = std::snprintf(refusal, sizeof refusal, "%s: ", entry);
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(refusal + used, sizeof refusal - static_cast<size_t>(used), format, arguments);
  va_end(arguments);
  was_refused = true;
  return status;
}

puone_status passedOn(puone_status status, const char* entry) {
  if (status == PUONE_OK) return status;
  const char* const text = driversMessage();
  const char* const reason = std::strstr(text, ": ");
  return refuse(status, entry, "%s", reason != nullptr ? reason + 2 : text);
}

const char* lastErrorMessage() {
  return was_refused ? refusal : driversMessage();
}

} // namespace puone::validation
