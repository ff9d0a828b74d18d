// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/driver.h"

#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <mutex>
#include <string_view>

#include "runtime/driver_choice.h"
#include "runtime/driver_table.h"
#include "runtime/launch_debugging.h"

namespace puone {
namespace {

std::atomic<bool> device_used{false};
std::atomic<bool> forked_after_use{false};
std::atomic<bool> driver_down{false};
std::array<std::atomic<const puone_hal_api*>, kTableLayers> layers{};
std::atomic<const puone_hal_api*> other_table{nullptr}; // the outermost of them
// What hal() gives, once it has given it; NULL again in a forked child, after shutdown, and while
// another table is put over the driver's. Set under the mutex.
std::atomic<const puone_hal_api*> table_in_use{nullptr};

std::mutex& tableMutex() noexcept {
  static auto* const only = new std::mutex(); // leaked: threads may use it while the process exits
  return *only;
}

ChosenDriver*& choice() noexcept {
  // Leaked: deleters of device memory may run during static destruction.
  static auto* instance = [] {
    pthread_atfork(nullptr, nullptr, [] {
      forked_after_use = device_used.load();
      table_in_use = nullptr;
    });
    return new ChosenDriver();
  }();
  return instance;
}

ChosenDriver& chosen() noexcept {
  return *choice();
}

[[noreturn]] C10_NOINLINE void throwUnusable() {
  TORCH_CHECK(
      !inBadFork(),
      "Cannot re-initialize puone in forked subprocess. To use puone with multiprocessing, you "
      "must use the 'spawn' start method");
  TORCH_CHECK(!driverIsDown(), "puone was shut down: the process is exiting");
  TORCH_CHECK(false, "puone has no usable driver: ", chosen().state.error);
}

C10_NOINLINE const puone_hal_api& findTable() {
  // Before the lock, which another thread may have held when this process was forked.
  if (inBadFork()) throwUnusable();
  const std::lock_guard lock(tableMutex());
  const puone_hal_api* api = halOrNull();
  if (api == nullptr) throwUnusable();
  device_used.store(true);
  table_in_use.store(api, std::memory_order_release);
  return *api;
}

} // namespace

const DriverState& driverState() noexcept {
  return chosen().state;
}

bool inBadFork() noexcept {
  return forked_after_use.load(std::memory_order_relaxed);
}

bool driverIsDown() noexcept {
  return driver_down.load(std::memory_order_acquire);
}

// [quote: table]
const puone_hal_api& hal() {
  const puone_hal_api* api = table_in_use.load(std::memory_order_acquire);
  return C10_LIKELY(api != nullptr) ? *api : findTable();
}

const puone_hal_api* halOrNull() noexcept {
  const auto& instance = chosen();
  const bool usable = !inBadFork() && !driverIsDown() && instance.state.available();
  if (!usable) {
    return nullptr;
  }
  const puone_hal_api* other = other_table.load(std::memory_order_acquire);
  return C10_UNLIKELY(other != nullptr) ? other : &instance.driver->api;
}
// [end: table]

const puone_hal_api& halWithoutDevice() {
  if (!chosen().state.loaded || driverIsDown() || inBadFork()) throwUnusable();
  return chosen().driver->api;
}

void useTable(TableLayer layer, TableOver over) noexcept {
  static std::array<TableOver, kTableLayers> makers{};
  const std::lock_guard guard(tableMutex());
  makers[static_cast<size_t>(layer)] = over;
  const puone_hal_api* outermost = nullptr;
  for (size_t i = 0; i < layers.size(); ++i) {
    const puone_hal_api& under = outermost != nullptr ? *outermost : chosen().driver->api;
    const puone_hal_api* table = makers[i] != nullptr ? makers[i](under) : nullptr;
    layers[i].store(table);
    if (table != nullptr) outermost = table;
  }
  other_table.store(outermost, std::memory_order_release);
  table_in_use.store(nullptr, std::memory_order_release);
}

const puone_hal_api& tableUnder(TableLayer layer) noexcept {
  for (auto i = static_cast<size_t>(layer); i-- > 0;) {
    if (const puone_hal_api* table = layers[i].load(std::memory_order_acquire)) return *table;
  }
  return chosen().driver->api;
}

void chooseDriverAgain() {
  if (inBadFork() || driverIsDown()) throwUnusable();
  TORCH_CHECK(!device_used, "the driver cannot be chosen again: puone has used a device");
  const auto& old = chosen().driver;
  if (old) {
    const puone_status status = old->api.shutdown();
    TORCH_CHECK(status == PUONE_OK, "the driver of puone cannot be shut down");
  }
  choice() = new ChosenDriver(); // the old one stays: its library does
}

void shutdownDriver() noexcept {
  if (!chosen().driver || driver_down.exchange(true)) {
    return;
  }
  if (inBadFork()) return;
  {
    const std::lock_guard lock(tableMutex());
    table_in_use.store(nullptr, std::memory_order_release);
  }
  chosen().driver->api.shutdown();
}

namespace detail {
namespace {

// "hal().stream_synchronize(handle())" -> "stream_synchronize"; a bare name stays as it is.
std::string_view entryName(std::string_view call) {
  constexpr std::string_view table = "hal().";
  if (call.starts_with(table)) {
    call.remove_prefix(table.size());
  }
  return call.substr(0, call.find('('));
}

} // namespace

void throwStatus(puone_status status, const char* call) {
  // The driver's text begins with the entry's name.
  const std::string_view reason = chosen().driver->api.last_error_message();
  const auto entry = entryName(call);
  const auto message =
      reason.empty()              ? c10::str("puone driver error in ", entry, ": no reason given")
      : reason.starts_with(entry) ? c10::str("puone driver error in ", reason)
                                  : c10::str("puone driver error in ", entry, ": ", reason);
  switch (status) {
    case PUONE_OUT_OF_MEMORY:
      C10_THROW_ERROR(OutOfMemoryError, message);
    case PUONE_UNSUPPORTED:
      C10_THROW_ERROR(
          NotImplementedError,
          c10::str(message, " (driver ", chosen().state.name, " does not support it)"));
    case PUONE_INVALID_ARGUMENT:
    case PUONE_INVALID_DEVICE:
      C10_THROW_ERROR(Error, message);
    default:
      throw c10::AcceleratorError(
          {__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, status, message + launchStack());
  }
}

} // namespace detail

bool isDone(puone_status status, const char* entry) {
  if (status == PUONE_NOT_READY) {
    return false;
  }
  PUONE_CHECK_STATUS(status, entry);
  return true;
}

} // namespace puone
