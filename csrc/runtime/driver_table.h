// SPDX-License-Identifier: BSD-3-Clause
// For what watches the calls that the runtime makes to the driver.
#pragma once

#include "hal/hal.h"

namespace puone {

// Lets hal() give `table` instead of the driver's own, or with NULL the driver's own again. `table`
// must live as long as the process, because calls may be in it at any time. Thread-safe.
void useTable(const puone_hal_api* table) noexcept;

} // namespace puone
