// SPDX-License-Identifier: BSD-3-Clause
// The list of device kernels, for a driver's kernel_find() and kernel_launch().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/launch.h"

namespace puone::kernels {

struct Kernel {
  const char* name;
  uint32_t version;       // of its contract
  uint64_t element_types; // bit (1 << puone_dtype): takes that type
  size_t args_size;       // of its argument struct
  void (*run)(Launch& launch, const void* args);
};

/// The kernels as compiled for one instruction set of the host.
struct Variant {
  const char* isa; // "baseline", or a level of the x86-64 psABI: "v3", "v4"
  bool usable;     // on this processor
  std::span<const Kernel> kernels;
};

/// Every variant that was built, best last. The baseline is always there and usable.
std::span<const Variant> variants();

} // namespace puone::kernels
