// SPDX-License-Identifier: BSD-3-Clause
// The HAL's extension "trace".
#pragma once

#include "hal/hal.h"

namespace puone::profiler {

/// The driver's table. Throws NotImplementedError if it has none.
const puone_trace_api& tracing();

} // namespace puone::profiler
