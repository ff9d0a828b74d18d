// SPDX-License-Identifier: BSD-3-Clause
// The options of the simulated accelerator, from the environment. Read once, by init().
#pragma once

#include <cstdint>
#include <string>

namespace puone::sim {

struct Options {
  int32_t devices = 2;                 // PUONE_SIM_DEVICES, 0..64
  uint64_t memory = uint64_t{4} << 30; // PUONE_SIM_MEMORY, bytes per device, K/M/G/T suffix
  bool adversarial = false;            // PUONE_SIM_SEED is set
  uint64_t seed = 0;                   // PUONE_SIM_SEED
  bool poison = false;                 // PUONE_SIM_POISON=1
  uint64_t latency_ns = 0;             // PUONE_SIM_LATENCY_US, per piece of device work
  std::string isa;                     // PUONE_SIM_ISA, a kernel variant; default: the best
  int32_t cores = 1;                   // PUONE_SIM_CORES, default: those the process may use

  /// Reads the environment. Throws Error(INTERNAL) with the name and value of an invalid variable,
  /// and the valid values.
  static Options fromEnvironment();
};

} // namespace puone::sim
