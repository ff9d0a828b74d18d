// SPDX-License-Identifier: BSD-3-Clause
// A lying driver: it wraps another driver's table and breaks one entry, so that the test suites can
// be tested. A lie is a function that replaces entries of a copy of the true table; the replacement
// reaches the wrapped driver through truth(). One lie per process, chosen by PUONE_LIAR.
#pragma once

#include <span>

#include "hal/hal.h"

namespace puone::liar {

struct Lie {
  const char* id; // the value of PUONE_LIAR, and the key in liars.yaml
  void (*tell)(puone_hal_api& table);
};

/// Every lie, in the order of liars.yaml. The first, "none", changes nothing.
std::span<const Lie> lies();

/// The wrapped driver's own table. Valid once puone_hal_get() has returned OK.
const puone_hal_api& truth();

// Lies about devices.
void deviceSynchronizeDoesNothing(puone_hal_api& table);
void currentDeviceIsProcessWide(puone_hal_api& table);

// Lies about memory.
void allocationIsReportedOnDevice0(puone_hal_api& table);
void deviceMemoryIsOpenToTheHost(puone_hal_api& table);
void freeNeverUnmaps(puone_hal_api& table);
void memcpyCopiesNothing(puone_hal_api& table);
void pinnedMemoryIsNotPinned(puone_hal_api& table);

// Lies about streams.
void streamQueryIsAlwaysTrue(puone_hal_api& table);
void streamQueryIsNeverTrue(puone_hal_api& table);
void streamSynchronizeDoesNothing(puone_hal_api& table);
void waitEventDoesNothing(puone_hal_api& table);

// Lies about events.
void elapsedIsConstant(puone_hal_api& table);
void eventsCompleteAtOnce(puone_hal_api& table);
void eventSynchronizeDoesNothing(puone_hal_api& table);

// Lies about order.
void tasksRunInReverse(puone_hal_api& table);

} // namespace puone::liar
