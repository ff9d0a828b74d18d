// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/out_of_memory.h"

#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

#include <cstdio>
#include <iterator>

namespace puone {

std::string formatBytes(uint64_t bytes) {
  const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  size_t unit = 0;
  double value = static_cast<double>(bytes);
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof(text), unit == 0 ? "%.0f %s" : "%.2f %s", value, units[unit]);
  return text;
}

void throwOutOfMemory(c10::DeviceIndex device, size_t requested, const MemoryUse& use) {
  TORCH_CHECK_WITH(
      OutOfMemoryError,
      false,
      "puone out of memory. Tried to allocate ",
      formatBytes(requested),
      ". puone:",
      static_cast<int>(device),
      " has a total capacity of ",
      formatBytes(use.total),
      " of which ",
      formatBytes(use.free),
      " is free. ",
      use.limit > 0 ? c10::str(formatBytes(use.limit), " allowed; ") : std::string(),
      "Of the allocated memory ",
      formatBytes(use.allocated),
      " is allocated by PyTorch, and ",
      formatBytes(use.reserved - use.allocated),
      " is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try "
      "setting PYTORCH_ALLOC_CONF=max_split_size_mb to avoid fragmentation.");
}

} // namespace puone
