// SPDX-License-Identifier: BSD-3-Clause
// What this driver is called and can do, and the one symbol that it exports.
#include "drivers/common/entries.h"
#include "drivers/common/extensions.h"

#include "drivers/host/driver.h"

namespace puone::host {
namespace {

struct Host {
  using Driver = host::Driver;
  // A capability promises the entries that hal.h lists with it: declare one when you have them.
  static constexpr Description kDescription{
      .name = "host",
      .vendor = "your company",
      .version = "0.1.0",
      .capabilities = PUONE_CAP_STREAMS | PUONE_CAP_HOST_FUNC | PUONE_CAP_EVENTS |
                      PUONE_CAP_EVENT_TIMING | PUONE_CAP_MEMORY | PUONE_CAP_PINNED_MEMORY};
  static constexpr const char* kBadFork =
      "puone was used before fork(), and its threads do not exist in this child process: use the "
      "spawn or forkserver start method, or fork before the first use";

  static Driver* create() {
    return new Driver();
  }
  static const char* runningWork() {
    return Driver::runningWork();
  }
  static void beforeFork(Driver& driver) {
    driver.lockAll();
  }
  static void afterFork(Driver& driver) {
    driver.unlockAll();
  }
  static bool survivesFork(const Driver& driver) {
    return !driver.hasThreads();
  }
  static bool hasKernels() {
    return true;
  }
  static std::span<const Extension> extensions();
};

/// Optional tables, of which hal.h declares more, such as "graph": a name, a version and a table of
/// functions for each.
constexpr Extension kExtensions[] = {
    {PUONE_TRACE_EXTENSION, PUONE_TRACE_VERSION, &TraceEntries<Host>::kTable},
};

std::span<const Extension> Host::extensions() {
  return kExtensions;
}

} // namespace
} // namespace puone::host

extern "C" __attribute__((visibility("default"))) puone_status
puone_hal_get(uint32_t abi_major, const puone_hal_api** out) {
  return puone::Entries<puone::host::Host>::get(abi_major, out);
}
