// SPDX-License-Identifier: BSD-3-Clause
// What the cuda driver adds to the table of entries: its life and its extensions.
#include "drivers/common/entries.h"
#include "drivers/common/extensions.h"
#include "drivers/cuda/driver.h"
#include "drivers/cuda/host_call.h"

namespace puone::cuda {
namespace {

struct Cuda {
  using Driver = cuda::Driver;
  static constexpr Description kDescription{
      .name = "cuda",
      .vendor = "PUOne project",
      .version = "0.2.0",
      .capabilities = PUONE_CAP_STREAMS | PUONE_CAP_STREAM_PRIORITIES | PUONE_CAP_HOST_FUNC |
                      PUONE_CAP_EVENTS | PUONE_CAP_EVENT_TIMING | PUONE_CAP_MEMORY |
                      PUONE_CAP_PINNED_MEMORY | PUONE_CAP_PEER_ACCESS | PUONE_CAP_EXTERNAL_STREAMS};
  static constexpr const char* kBadFork =
      "puone cuda was used before fork(), and CUDA cannot be used in this child process: use the "
      "spawn or forkserver start method, or fork before the first use";

  static Driver* create() {
    return new Driver();
  }
  static const char* runningWork() {
    return inHostCall() ? "a host function" : nullptr;
  }
  static void beforeFork(Driver&) {}
  static void afterFork(Driver&) {}
  static bool survivesFork(const Driver& driver) {
    return !driver.isUsed();
  }
  static bool hasKernels() {
    return Driver::hasKernels();
  }
  static std::span<const Extension> extensions();
};

using Table = Entries<Cuda>;

// ---- extension "dlpack" ----

puone_status dlpackDeviceId(int32_t device, int32_t* out) {
  return Table::entry("dlpack.device_id", [=](Driver& d) {
    static_cast<void>(d); // a device has the same number for every user of CUDA
    *out = device;
  });
}

puone_status nativeStreamWaitEvent(void* native_stream, puone_event event) {
  return Table::entry("dlpack.native_stream_wait_event", [=](Driver& d) {
    d.nativeWaitEvent(static_cast<cudaStream_t>(native_stream), event);
  });
}

constexpr int32_t kDlCuda = 2; // kDLCUDA of dlpack.h

const puone_dlpack_api kDlpack = {
    sizeof(puone_dlpack_api),
    PUONE_DLPACK_VERSION,
    kDlCuda,
    0,
    cudaStreamLegacy,
    dlpackDeviceId,
    nativeStreamWaitEvent,
};

// ---- extensions ----

/// Why modules cannot be used, NULL if they can.
const char* missingModules() {
  if (!kLoadsModules) return "this driver was built with a CUDA older than 13";
  return Cuda::hasKernels() ? nullptr : "this driver was built without kernels";
}

constexpr Extension kExtensions[] = {
    {PUONE_COLLECTIVE_EXTENSION,
     PUONE_COLLECTIVE_VERSION,
     &CollectiveEntries<Cuda>::kTable,
     Driver::missingCollectives},
    {PUONE_DLPACK_EXTENSION, PUONE_DLPACK_VERSION, &kDlpack},
    {PUONE_GRAPH_EXTENSION, PUONE_GRAPH_VERSION, &GraphEntries<Cuda>::kTable},
    {PUONE_TRACE_EXTENSION, PUONE_TRACE_VERSION, &TraceEntries<Cuda>::kTable},
    {PUONE_MODULE_EXTENSION, PUONE_MODULE_VERSION, &ModuleEntries<Cuda>::kTable, missingModules},
};

std::span<const Extension> Cuda::extensions() {
  return kExtensions;
}

} // namespace
} // namespace puone::cuda

extern "C" __attribute__((visibility("default"))) puone_status
puone_hal_get(uint32_t abi_major, const puone_hal_api** out) {
  return puone::cuda::Table::get(abi_major, out);
}
