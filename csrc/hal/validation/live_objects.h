// SPDX-License-Identifier: BSD-3-Clause
// The handles that the caller may use, each with what a check has to know of its object. They are
// the driver's own handles: this is the only record of which are alive. Thread-safe.
#pragma once

#include <cstdint>

#include "hal/hal.h"
#include "hal/live_set.h"

namespace puone::validation {

/// The bits of a stream are its device; of an event, its device, its flags and whether it was
/// recorded; of a kernel, the size of its arguments in bytes and the device of its module; of a
/// communicator, its device, its rank and its size. A graph has none, and neither has memory of
/// another process or a module.
struct Live {
  LiveSet streams;
  LiveSet events;
  LiveSet kernels;
  LiveSet graphs;
  LiveSet mappings;
  LiveSet modules;
  LiveSet communicators;

  template <class F>
  void forEachSet(const F& f) {
    f(streams);
    f(events);
    f(kernels);
    f(graphs);
    f(mappings);
    f(modules);
    f(communicators);
  }
};

inline Live& live() {
  static auto* const all = new Live(); // leaked: threads may use it while the process exits
  return *all;
}

constexpr uint64_t kRecorded = uint64_t{1} << 63;

inline uint64_t eventBits(int32_t device, uint32_t flags) {
  return uint64_t{flags} << 32 | static_cast<uint32_t>(device);
}
inline int32_t deviceOf(uint64_t bits) {
  return static_cast<int32_t>(static_cast<uint32_t>(bits));
}
/// Of a kernel that runs on `device` only; -1: on any.
inline uint64_t kernelBits(uint64_t args_size, int32_t device) {
  return args_size << 16 | static_cast<uint16_t>(device);
}
inline uint64_t argsSizeOf(uint64_t kernel_bits) {
  return kernel_bits >> 16;
}
inline int32_t onlyDeviceOf(uint64_t kernel_bits) {
  return static_cast<int16_t>(static_cast<uint16_t>(kernel_bits));
}
inline bool isTimed(uint64_t bits) {
  return (bits >> 32 & PUONE_EVENT_TIMING) != 0;
}

} // namespace puone::validation
