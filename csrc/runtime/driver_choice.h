// SPDX-License-Identifier: BSD-3-Clause
// Which driver a process gets: the one that PUONE_DRIVER names, or the first with a device.
#pragma once

#include <optional>
#include <string>

#include "hal/loader.h"
#include "runtime/driver.h"

namespace puone {

// A driver that was chosen by the environment of its constructor, and asked for its devices.
struct ChosenDriver {
  DriverState state;                  // which driver, with how many devices, or why none
  std::optional<LoadedDriver> driver; // its table; empty where none could be loaded

  // Chooses, loads and asks. Takes as long as the driver takes to load.
  ChosenDriver() noexcept;

 private:
  void choose();
  // `choice` is a path, or the name of a bundled driver.
  void load(const std::string& choice);
  void tryLoad(const std::string& path);
};

} // namespace puone
