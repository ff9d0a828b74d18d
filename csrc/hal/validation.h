// SPDX-License-Identifier: BSD-3-Clause
// The validation layer: a table that wraps any driver's and refuses misuse before the driver sees
// it. It checks required pointers, struct sizes, device indices, the liveness of handles, the kind
// and extent of memory, sizes of arguments, flags, and that the events, streams and memory of one
// call belong to the same device. Extensions that this header's version knows are wrapped too.
//
// A refused call returns INVALID_ARGUMENT or INVALID_DEVICE (INTERNAL before init() and after
// shutdown()), changes nothing, and last_error_message() says "entry: reason". The handles that the
// caller sees are the driver's own.
//
// It holds no lock during the driver's call. If several threads destroy one object, one succeeds.
// But if a thread destroys a stream, or frees memory, while a call on another thread uses it, the
// behaviour is undefined, as without the layer.
//
// It is always on over sim. The loader puts it around every other driver if PUONE_VALIDATE=1.
#pragma once

#include "hal/hal.h"

namespace puone {

/// The table that wraps `driver`, which lives as long as the process. Entries that `driver` lacks
/// are NULL. There is one wrapped driver for each copy of this function in the process: a second
/// call with another table is not possible and returns NULL. Thread-safe.
/// `only_own_memory`: pointer_attributes() answers DEVICE and HOST only for blocks that the driver
/// itself has allocated, so that the layer need not ask it about most host memory.
const puone_hal_api* validated(const puone_hal_api& driver, bool only_own_memory = false);

} // namespace puone
