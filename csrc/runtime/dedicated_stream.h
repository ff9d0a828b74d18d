// SPDX-License-Identifier: BSD-3-Clause
// Streams that the pool gives to nobody else. Work that waits for other processes has to have such
// a stream: behind it, work that these processes wait for would never run.
#pragma once

#include "runtime/stream.h"

namespace puone {

// A stream for the caller alone, until it is given back; all work queued on it before that may
// still be running when it is given out again. It lives as long as the process. Its priority reads
// as 0. Thread-safe. device -1 means the current one.
Stream takeDedicatedStream(c10::DeviceIndex device = -1);
void giveBackDedicatedStream(const Stream& stream);

} // namespace puone
