// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/deferred_error.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

namespace puone {
namespace {

struct DeferredError {
  uint64_t number;
  c10::DeviceIndex device;
  std::exception_ptr error;
};

struct DeferredErrors {
  std::atomic<bool> any = false; // read without the lock: there is almost never one
  std::mutex mutex;
  uint64_t next = 1;
  std::vector<DeferredError> errors; // oldest first
};

DeferredErrors& deferred() {
  static auto* instance = new DeferredErrors(); // leaked: threads may outlive static destruction
  return *instance;
}

} // namespace

uint64_t deferError(c10::DeviceIndex device, std::exception_ptr error) {
  auto& all = deferred();
  const std::lock_guard lock(all.mutex);
  all.errors.push_back({all.next, device, std::move(error)});
  all.any.store(true, std::memory_order_release);
  return all.next++;
}

void withdrawError(uint64_t number) noexcept {
  auto& all = deferred();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.errors, [&](const auto& error) { return error.number == number; });
  all.any.store(!all.errors.empty(), std::memory_order_release);
}

void raiseDeferredError(c10::DeviceIndex device) {
  auto& all = deferred();
  if (!all.any.load(std::memory_order_acquire)) return;
  std::unique_lock lock(all.mutex);
  const auto found = std::find_if(all.errors.begin(), all.errors.end(), [&](const auto& error) {
    return device < 0 || error.device == device;
  });
  if (found == all.errors.end()) return;
  const std::exception_ptr error = found->error;
  all.errors.erase(found);
  all.any.store(!all.errors.empty(), std::memory_order_release);
  lock.unlock();
  std::rethrow_exception(error);
}

} // namespace puone
