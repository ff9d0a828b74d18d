// SPDX-License-Identifier: BSD-3-Clause
// Blocks and threads of a launch of a module's kernel. For the driver as well, whose code is not
// compiled for the device.
#pragma once

#include <cstdint>

namespace puone::kernels {

constexpr uint32_t kMaxModuleThreads = 512;

struct Geometry {
  uint32_t blocks;
  uint32_t threads; // of each block: a multiple of 32, at most kMaxModuleThreads
};

/// For `count` > 0 indices of a map if `work` is 0, else for `count` blocks of `work` elements.
constexpr Geometry moduleGeometry(int64_t count, int64_t work) {
  constexpr int64_t kMaxBlocks = 0x7fffffff; // block kernels go on with what is beyond
  constexpr int64_t kMapThreads = 256;
  if (work == 0) {
    return {
        static_cast<uint32_t>((count + kMapThreads - 1) / kMapThreads),
        static_cast<uint32_t>(kMapThreads)};
  }
  uint32_t threads = 32;
  while (threads < kMaxModuleThreads && int64_t{threads} * 4 < work) threads *= 2;
  return {static_cast<uint32_t>(count < kMaxBlocks ? count : kMaxBlocks), threads};
}

} // namespace puone::kernels
