// SPDX-License-Identifier: BSD-3-Clause
// What the environment decides about the stand-in. Read at the first call.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace puone::standin {

/// The nth call of a function (0: every one) returns `error` and does nothing. Two names are no
/// functions: "launch", a kernel launch that is refused at once, and "kernel", a kernel that is
/// accepted and fails when it runs, which is sticky.
struct Planted {
  std::string name;
  uint64_t nth;
  cudaError_t error;
  uint64_t calls = 0;
};

struct Options {
  bool driver = true;              // PUONE_STANDIN_NO_DRIVER=1: none is installed
  int devices = 2;                 // PUONE_STANDIN_DEVICES, 0..16
  size_t memory = size_t{4} << 30; // PUONE_STANDIN_MEMORY, MiB per device
  bool adversarial = false;        // PUONE_STANDIN_SEED is set: delays, other orders, poison
  uint64_t seed = 0;               // PUONE_STANDIN_SEED
  uint32_t blocks = 1;             // PUONE_STANDIN_BLOCKS, of a grid that run at the same time
  bool guarded = true;             // PUONE_STANDIN_UNGUARDED=1: the host may access device memory
  std::string library;             // PUONE_STANDIN_LIBRARY: see StandinServices
  std::vector<Planted> planted;    // PUONE_STANDIN_FAIL=name:nth=error,...; error: its number

  /// Ends the process if a variable is not valid.
  static Options fromEnvironment();
};

} // namespace puone::standin
