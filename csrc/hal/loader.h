// SPDX-License-Identifier: BSD-3-Clause
// Loading a driver: open the library, ask for its table, and check that it has what hal.h requires,
// before anything calls it.
#pragma once

#include <stdexcept>
#include <string>

#include "hal/hal.h"

namespace puone {

// The reason why a driver cannot be used: one sentence that names the file.
class DriverError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A driver that is in use.
struct LoadedDriver {
  std::string path;
  puone_driver_info info{};
  // The driver's table, completed: an entry that is NULL or beyond the driver's struct_size is
  // replaced by one that returns PUONE_UNSUPPORTED, so that no caller has to test for NULL.
  puone_hal_api api{};
};

// Opens `path` and initialises the driver; the library stays loaded for the life of the process.
// With PUONE_VALIDATE=1 in the environment the table is wrapped by the validation layer
// (validation.h), unless the driver has it already. Throws DriverError if the file or the symbol is
// missing, the ABI major differs, the table is too short, an entry is absent although its
// capability is declared, or init() fails.
LoadedDriver loadDriver(const std::string& path);

} // namespace puone
