// SPDX-License-Identifier: BSD-3-Clause
// What the sim driver adds to the table of entries: initialisation, its extensions and validation.
#include "drivers/common/entries.h"
#include "drivers/common/extensions.h"
#include "drivers/sim/driver.h"
#include "drivers/sim/host_guard.h"
#include "hal/validation.h"
#include "kernels/kernels.h"

namespace puone::sim {
namespace {

struct Sim {
  using Driver = sim::Driver;
  static constexpr Description kDescription{
      .name = "sim",
      .vendor = "PUOne project",
      .version = "0.2.0",
      .capabilities = PUONE_CAP_STREAMS | PUONE_CAP_STREAM_PRIORITIES | PUONE_CAP_HOST_FUNC |
                      PUONE_CAP_EVENTS | PUONE_CAP_EVENT_TIMING | PUONE_CAP_MEMORY |
                      PUONE_CAP_PINNED_MEMORY | PUONE_CAP_PEER_ACCESS | PUONE_CAP_EXTERNAL_STREAMS};
  static constexpr const char* kBadFork =
      "puone sim was used before fork() and its threads do not exist in this child process: use "
      "the spawn or forkserver start method, or fork before the first use";

  static Driver* create() {
    return new Driver(Options::fromEnvironment());
  }
  static const char* runningWork() {
    return sim::runningWork();
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
    return !kernels::variants().front().kernels.empty();
  }
  static std::span<const Extension> extensions();
};

using Table = Entries<Sim>;

__attribute__((destructor)) void atExit() {
  if (Driver* driver = Life<Sim>::current()) driver->abandon();
}

// ---- extension "fault" ----

puone_status outOfMemoryAt(uint64_t nth) {
  return Table::entry(
      "fault.out_of_memory_at", [=](Driver& d) { d.faults().out_of_memory.arm(nth); });
}

puone_status kernelErrorAt(uint64_t nth) {
  return Table::entry(
      "fault.kernel_error_at", [=](Driver& d) { d.faults().kernel_error.arm(nth); });
}

puone_status deviceLost(int32_t device) {
  return Table::entry("fault.device_lost", [=](Driver& d) { d.loseDevice(device); });
}

puone_status latencyNs(uint64_t ns) {
  return Table::entry("fault.latency_ns", [=](Driver& d) { d.setLatency(ns); });
}

puone_status resetFaults() {
  return Table::entry("fault.reset", [](Driver& d) { d.clearFaults(); });
}

const puone_fault_api kFault = {
    sizeof(puone_fault_api),
    PUONE_FAULT_VERSION,
    outOfMemoryAt,
    kernelErrorAt,
    deviceLost,
    latencyNs,
    resetFaults,
};

/// Why modules cannot be used, NULL if they can.
const char* missingModules() {
  return Sim::hasKernels() ? nullptr : "this driver was built without kernels";
}

constexpr Extension kExtensions[] = {
    {PUONE_FAULT_EXTENSION, PUONE_FAULT_VERSION, &kFault},
    {PUONE_GRAPH_EXTENSION, PUONE_GRAPH_VERSION, &GraphEntries<Sim>::kTable},
    {PUONE_TRACE_EXTENSION, PUONE_TRACE_VERSION, &TraceEntries<Sim>::kTable},
    {PUONE_IPC_EXTENSION, PUONE_IPC_VERSION, &IpcEntries<Sim>::kTable},
    {PUONE_ORIGIN_EXTENSION, PUONE_ORIGIN_VERSION, &OriginEntries<Sim>::kTable},
    {PUONE_MODULE_EXTENSION, PUONE_MODULE_VERSION, &ModuleEntries<Sim>::kTable, missingModules},
};

std::span<const Extension> Sim::extensions() {
  return kExtensions;
}

} // namespace
} // namespace puone::sim

extern "C" __attribute__((visibility("default"))) puone_status
puone_hal_get(uint32_t abi_major, const puone_hal_api** out) {
  const puone_status status = puone::sim::Table::get(abi_major, out);
  if (status == PUONE_OK) *out = puone::validated(**out, /*only_own_memory=*/true);
  return status;
}
