// SPDX-License-Identifier: BSD-3-Clause
// From the driver's streams back to the runtime's, for what watches the driver's calls.
#pragma once

#include <optional>

#include "runtime/stream.h"

namespace puone {

// The stream of any device that has this handle of the driver; nothing if the runtime has no such
// stream. Looks through all of them. Thread-safe.
std::optional<Stream> findStream(puone_stream handle);

// The stream of the device that has this native handle; nothing if the runtime has no such stream.
// Thread-safe.
std::optional<Stream> findNativeStream(void* native, c10::DeviceIndex device);

} // namespace puone
