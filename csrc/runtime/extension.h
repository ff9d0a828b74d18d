// SPDX-License-Identifier: BSD-3-Clause
// Extensions of the HAL as typed tables. Looked up each time: a table over the driver's may have
// tables of extensions of its own.
#pragma once

#include <cstdint>
#include <string>

#include "hal/hal.h"
#include "runtime/driver.h"

namespace puone {

// NULL if the table's driver does not have it. `Api` is the struct that the extension's header has
// for the name and version.
template <class Api>
const Api* findExtension(const puone_hal_api& table, const char* name, uint32_t version) {
  const void* found = nullptr;
  const bool there = table.get_extension(name, version, &found) == PUONE_OK;
  return there ? static_cast<const Api*>(found) : nullptr;
}

// Throws NotImplementedError if the driver does not have it.
template <class Api>
const Api& requireExtension(const char* name, uint32_t version) {
  const void* table = nullptr;
  PUONE_CHECK_STATUS(
      hal().get_extension(name, version, &table),
      (std::string("get_extension(\"") + name + "\")").c_str());
  return *static_cast<const Api*>(table);
}

} // namespace puone
