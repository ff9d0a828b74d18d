// SPDX-License-Identifier: BSD-3-Clause
// The kernels of this driver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace puone::host {

/// One kernel of csrc/hal/kernels.yaml, by its name there.
struct Kernel {
  const char* name;
  uint32_t version;       // of the contract that it was written for
  uint64_t element_types; // bit (1 << puone_dtype) for each
  size_t args_size;
  void (*run)(const void* args); // on the stream's thread; throws Error if the work fails
};

/// All of them. The objects live as long as the library.
std::span<const Kernel> kernels();

} // namespace puone::host
