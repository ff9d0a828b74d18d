// SPDX-License-Identifier: BSD-3-Clause
// A scan over the threads of a block.
#pragma once

#include <cstdint>

#include "kernels/isa.h"
#include "kernels/simt/blocks.h"
#include "kernels/simt/shared.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA::detail {

/// Threads of the blocks that scan.
constexpr uint32_t kScanThreads = 256;

/// The exclusive scan of the values of a block's threads. `all` becomes their total. Equal values
/// give equal bits.
template <class Op, class Gathered>
PUONE_DEVICE Gathered before(const Op& op, Gathered mine, Gathered& all) {
  constexpr uint32_t kWarps = kScanThreads / kWarpThreads;
  PUONE_SHARED SharedArray<Gathered, kWarps> memory;
  Gathered* const warps = memory.data();
  const uint32_t lane = threadIdx.x % kWarpThreads, warp = threadIdx.x / kWarpThreads;
  for (uint32_t by = 1; by < kWarpThreads; by *= 2) {
    const Gathered other = shuffleUp(mine, by);
    if (lane >= by) mine = op.combine(other, mine);
  }
  if (lane == kWarpThreads - 1) warps[warp] = mine;
  const Gathered left = shuffleUp(mine, 1);
  __syncthreads();
  Gathered start = op.nothing();
  all = op.nothing();
  for (uint32_t w = 0; w < kWarps; ++w) {
    if (w == warp) start = all;
    all = op.combine(all, warps[w]);
  }
  __syncthreads();
  return lane == 0 ? start : op.combine(start, left);
}

} // namespace puone::kernels::PUONE_ISA::detail
