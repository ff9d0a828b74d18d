// SPDX-License-Identifier: BSD-3-Clause
// How the layer refuses a call, and which text last_error_message() gives then: that of the calling
// thread's last refusal, or the driver's, whichever is newer.
#pragma once

#include "hal/hal.h"

namespace puone::validation {

/// Whether the calling thread's last refusal is newer than the driver's text.
inline thread_local bool was_refused = false;

/// Keeps "entry: reason" as the text of the calling thread's last refusal; gives `status` back.
__attribute__((format(printf, 3, 4), cold)) puone_status
refuse(puone_status status, const char* entry, const char* format, ...);

/// The driver's status; if it is a failure, the driver's text is the last one.
inline puone_status answered(puone_status status) {
  if (status != PUONE_OK && status != PUONE_NOT_READY) was_refused = false;
  return status;
}

/// The driver's status for a call that this layer made itself; the message names the caller's
/// entry.
puone_status passedOn(puone_status status, const char* entry);

/// The table's entry last_error_message().
const char* lastErrorMessage();

} // namespace puone::validation
