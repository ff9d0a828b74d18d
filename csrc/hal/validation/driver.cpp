// SPDX-License-Identifier: BSD-3-Clause
// The entries of the driver as a whole: its start, its end, and what it is.
#include <pthread.h>

#include <atomic>

#include "hal/validation/checked_entries.h"
#include "hal/validation/checks.h"
#include "hal/validation/live_objects.h"
#include "hal/validation/memory_checks.h"
#include "hal/validation/module_kernels.h"
#include "hal/validation/refusals.h"
#include "hal/validation/releasing.h"
#include "hal/validation/state.h"

namespace puone::validation {
namespace {

void beforeFork() {
  modulesKernels().lock();
  live().forEachSet([](const LiveSet& set) { set.lock(); });
  Releasing::mutex().lock();
}
void afterFork() {
  Releasing::mutex().unlock();
  live().forEachSet([](const LiveSet& set) { set.unlock(); });
  modulesKernels().unlock();
}

} // namespace

puone_status init() {
  const puone_status status = answered(driver->init());
  if (status != PUONE_OK) return status;
  static const int watches_forks = pthread_atfork(beforeFork, afterFork, afterFork);
  if (watches_forks != 0) return refuse(PUONE_INTERNAL, "init", "pthread_atfork failed");
  running.store(true, std::memory_order_release);
  return PUONE_OK;
}

puone_status shutdown() {
  running.store(false, std::memory_order_release);
  announceEndOfMemory();
  const puone_status status = answered(driver->shutdown());
  if (status != PUONE_OK) { // it refuses, for example from within a host function, and stays in use
    running.store(true, std::memory_order_release);
    return status;
  }
  modulesKernels().clear();
  live().forEachSet([](LiveSet& set) { set.clear(); });
  known_count.store(-1, std::memory_order_relaxed);
  return status;
}

puone_status describe(puone_driver_info* out) {
  CHECKED(checkStruct("describe", out));
  const puone_status status = answered(driver->describe(out));
  if (status == PUONE_OK) out->capabilities |= PUONE_CAP_VALIDATION;
  return status;
}

} // namespace puone::validation
