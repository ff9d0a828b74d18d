// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/driver_choice.h"

#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "runtime/launch_debugging.h"

namespace puone {
namespace {

constexpr std::string_view kPrefix = "libpuone_";
constexpr std::string_view kSuffix = ".so";

// Our own drivers are installed beside the library that this function lives in.
std::filesystem::path driverDirectory() {
  Dl_info self{};
  TORCH_INTERNAL_ASSERT(dladdr(reinterpret_cast<void*>(&driverDirectory), &self) != 0);
  return std::filesystem::path(self.dli_fname).parent_path();
}

std::string bundledDriver(std::string_view name) {
  return (driverDirectory() / c10::str(kPrefix, name, kSuffix)).string();
}

// False also where it cannot be known: a name that is too long, a directory that cannot be read.
bool exists(const std::string& path) noexcept {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

// The names of our own drivers that were built, for people. Drivers for tests are not among them.
std::string bundledNames() {
  std::vector<std::string> names;
  for (const auto& name : c10::split(PUONE_DRIVER_NAMES, ',')) {
    if (exists(bundledDriver(name))) {
      names.emplace_back(name);
    }
  }
  return names.empty() ? "none" : c10::Join(", ", names);
}

bool isPath(std::string_view choice) {
  return choice.find('/') != std::string_view::npos || choice.ends_with(".so");
}

} // namespace

// Thrown exceptions end here, as the reason why there is no usable driver.
ChosenDriver::ChosenDriver() noexcept {
  try {
    choose();
  } catch (const std::exception& e) {
    state = {};
    state.error = e.what();
  }
}

void ChosenDriver::choose() {
  const char* choice = std::getenv("PUONE_DRIVER");
  if (choice != nullptr && *choice != '\0') {
    load(choice);
    return;
  }
  // Unset: the first with a device, in the order that the build says. The last one is tried
  // whether its file is there or not, so that there is an error to report.
  const auto names = c10::split(PUONE_PREFERRED_DRIVERS, ',');
  std::string why;
  for (const auto& name : names) {
    const auto path = bundledDriver(name);
    if (!exists(path) && name != names.back()) continue;
    tryLoad(path);
    state.passed_over = why;
    if (state.available()) return;
    why = state.error;
  }
}

void ChosenDriver::load(const std::string& choice) {
  const auto path = isPath(choice) ? choice : bundledDriver(choice);
  if (isPath(choice) || exists(path)) {
    tryLoad(path);
  } else {
    state.error = c10::str("there is no driver ", choice);
  }
  if (!state.available()) {
    state.error += c10::str(
        " (PUONE_DRIVER=", choice, "; it is a path, or the name of one of: ", bundledNames(), ")");
  }
}

void ChosenDriver::tryLoad(const std::string& path) {
  state = {};
  try {
    driver = loadDriver(path);
    state.loaded = true;
    state.name = driver->info.name;
    state.path = path;
    state.capabilities = driver->info.capabilities;
    int32_t count = 0;
    if (driver->api.device_count(&count) != PUONE_OK) {
      state.error = "driver " + path + " cannot use its devices: ";
      state.error += driver->api.last_error_message();
    } else if (count == 0) {
      state.error = "driver " + path + " has no device";
    }
    state.device_count = count;
    if (state.available()) debugLaunches(driver->api);
  } catch (const std::exception& e) {
    state.error = e.what();
  }
}

} // namespace puone
