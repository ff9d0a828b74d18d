// SPDX-License-Identifier: BSD-3-Clause
// For what watches the calls that the runtime makes to the driver: tables over the driver's own.
#pragma once

#include "hal/hal.h"

namespace puone {

// What may be over the driver, from the driver outwards.
enum class TableLayer {
  Sanitizer,
  Observer
};
constexpr int kTableLayers = 2;

// Puts `table` into the layer, or with NULL takes it out; hal() gives the outermost one. A table
// must live as long as the process, because calls may be in it at any time. Thread-safe.
void useTable(TableLayer layer, const puone_hal_api* table) noexcept;

// The table that the entries of a layer's table call: that of the next layer inwards, in the end
// the driver's own. It changes when that layer is put in or taken out. Only where hal() does not
// throw. Thread-safe.
const puone_hal_api& tableUnder(TableLayer layer) noexcept;

} // namespace puone
