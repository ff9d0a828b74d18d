// SPDX-License-Identifier: BSD-3-Clause
// Errors of work that a driver does not know to have failed: a stream waited for something on the
// host, such as a message of another process, and it did not come. The stream goes on, and the next
// synchronisation with its device raises the error, as it does for the driver's own. Thread-safe.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <exception>

namespace puone {

// Makes the next synchronisation with the device throw `error`, once. Returns a number for
// withdrawError().
uint64_t deferError(c10::DeviceIndex device, std::exception_ptr error);

// For an error that has reached the caller in another way. No effect if it was raised already.
void withdrawError(uint64_t number) noexcept;

// Throws the oldest error that was deferred for the device, if any; for any device if it is -1.
// Call after a synchronisation.
void raiseDeferredError(c10::DeviceIndex device);

} // namespace puone
