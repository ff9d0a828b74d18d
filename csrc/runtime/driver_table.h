// SPDX-License-Identifier: BSD-3-Clause
// For what watches the calls that the runtime makes to the driver: tables over the driver's own.
#pragma once

#include "hal/hal.h"

namespace puone {

// What may be over the driver, from the driver outwards.
enum class TableLayer {
  Sanitizer, // checks that accesses to memory are ordered
  Observer   // sees every call; outermost
};
// Number of layers.
constexpr int kTableLayers = 2;

// Makes a layer's table of the one underneath, whose entries it keeps where it has none of its own.
// What it gives must live as long as the process, because calls may be in it at any time. It is
// called again whenever another table is underneath, one call at a time.
using TableOver = const puone_hal_api* (*)(const puone_hal_api& under);

// Puts a table into the layer, or with NULL takes it out; hal() gives the outermost one. The tables
// of the layers further out are made anew. Thread-safe.
void useTable(TableLayer layer, TableOver over) noexcept;

// The table that the entries of a layer's table call: that of the next layer inwards, in the end
// the driver's own. It changes when that layer is put in or taken out. Only where hal() does not
// throw. Thread-safe.
const puone_hal_api& tableUnder(TableLayer layer) noexcept;

} // namespace puone
