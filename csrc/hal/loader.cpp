// SPDX-License-Identifier: BSD-3-Clause
#include "hal/loader.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "hal/entries.h"
#include "hal/validation.h"

namespace puone {
namespace {

template <typename... Args>
puone_status unsupportedEntry(Args...) {
  return PUONE_UNSUPPORTED;
}

const char* noErrorMessage() {
  return "";
}

template <typename... Args>
bool complete(puone_status (*&entry)(Args...)) {
  if (entry != nullptr) {
    return true;
  }
  entry = &unsupportedEntry<Args...>;
  return false;
}

puone_hal_get_fn findSymbol(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw DriverError("cannot open driver: " + std::string(dlerror()));
  }
  void* symbol = dlsym(library, PUONE_HAL_GET_SYMBOL);
  if (symbol == nullptr) {
    throw DriverError(
        "driver " + path + " does not export " PUONE_HAL_GET_SYMBOL "(): is it a puone driver?");
  }
  return reinterpret_cast<puone_hal_get_fn>(symbol);
}

// PUONE_VALIDATE: 1 means yes; 0 and empty mean no.
bool validationIsAskedFor() {
  const char* value = std::getenv("PUONE_VALIDATE");
  if (value == nullptr || *value == '\0' || std::strcmp(value, "0") == 0) {
    return false;
  }
  if (std::strcmp(value, "1") != 0) {
    throw DriverError("PUONE_VALIDATE=" + std::string(value) + " is not valid: expected 0 or 1");
  }
  return true;
}

// The table to call through: the driver's, or the validation layer's around it.
const puone_hal_api& outermost(const puone_hal_api& table, const std::string& path) {
  puone_driver_info info{};
  info.struct_size = sizeof info;
  const bool is_asked_for = validationIsAskedFor();
  if (!is_asked_for || table.describe == nullptr || table.describe(&info) != PUONE_OK ||
      (info.capabilities & PUONE_CAP_VALIDATION) != 0) {
    return table;
  }
  const puone_hal_api* wrapped = validated(table);
  if (wrapped == nullptr) {
    throw DriverError("driver " + path + " is a second one under validation");
  }
  return *wrapped;
}

const puone_hal_api& getTable(const std::string& path) {
  const puone_hal_api* table = nullptr;
  const puone_status status = findSymbol(path)(PUONE_HAL_ABI_MAJOR, &table);
  const std::string wanted = "HAL ABI major " + std::to_string(PUONE_HAL_ABI_MAJOR);
  if (status != PUONE_OK || table == nullptr) {
    throw DriverError(
        "driver " + path + " does not offer " + wanted + " (status " + std::to_string(status) +
        "); rebuild it against this hal.h");
  }
  // The header comes first in every version of the table, so it can be read before the version is
  // known.
  if (table->abi_major != PUONE_HAL_ABI_MAJOR) {
    throw DriverError(
        "driver " + path + " has HAL ABI major " + std::to_string(table->abi_major) +
        " although it was asked for " + wanted);
  }
  constexpr size_t minimum = offsetof(puone_hal_api, get_extension) + sizeof(table->get_extension);
  if (table->struct_size < minimum) {
    throw DriverError(
        "driver " + path + " has a table of " + std::to_string(table->struct_size) +
        " bytes; ABI " + std::to_string(PUONE_HAL_ABI_MAJOR) + ".0 has " + std::to_string(minimum));
  }
  return *table;
}

} // namespace

LoadedDriver loadDriver(const std::string& path) {
  const puone_hal_api& table = outermost(getTable(path), path);
  LoadedDriver driver;
  driver.path = path;
  std::memcpy(&driver.api, &table, std::min<size_t>(table.struct_size, sizeof(driver.api)));

  if (driver.api.last_error_message == nullptr) {
    driver.api.last_error_message = &noErrorMessage;
  }
  driver.info.struct_size = sizeof driver.info;
  if (table.describe == nullptr || table.describe(&driver.info) != PUONE_OK) {
    throw DriverError("driver " + path + " cannot describe itself");
  }
  forEachEntry([&](const char* name, auto entry, uint64_t capability) {
    if (complete(driver.api.*entry) || !isPromised(driver.info.capabilities, capability)) return;
    const std::string promise =
        capability == 0 ? "every driver must have it" : "the driver declares the capability of it";
    throw DriverError("the table of driver " + path + " has no entry " + name + ": " + promise);
  });
  complete(driver.api.get_extension);
  if (driver.api.init() != PUONE_OK) {
    throw DriverError(
        "driver " + path + " failed to initialise: " + driver.api.last_error_message());
  }
  return driver;
}

} // namespace puone
