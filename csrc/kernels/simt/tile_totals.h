// SPDX-License-Identifier: BSD-3-Clause
// The totals of the tiles of lines, from which each tile learns the total of those before it while
// all are being scanned (Merrill & Garland, Single-pass Parallel Prefix Scan with Decoupled
// Look-back, 2016).
//
// As published, a tile adds up the totals of its predecessors back to the first one that already
// has a prefix. Which one that is depends on the schedule, and with it how a sum of floats is
// rounded. Here the order is fixed, so that equal inputs give equal bits: tiles form groups of
// kGroup, a tile adds up the totals of its own group's tiles before it, one per thread, all at
// once, and then the total of all groups before, which the last tile of the group before hands
// on. The chain of those that wait for each other has a link for each group and not for each tile.
// Sums of integers could do without this; a second way is not worth its code.
#pragma once

#include <cstdint>

#include "kernels/isa.h"
#include "kernels/launch.h"
#include "kernels/simt/between_blocks.h"
#include "kernels/simt/block_scan.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA::detail {

template <class Op>
class TileTotals {
 public:
  using Gathered = typename Op::Gathered;
  static constexpr int64_t kGroup = kScanThreads;

  /// Of `lines` lines of `tiles` tiles each.
  TileTotals(Launch& launch, int64_t lines, int64_t tiles)
      : lines_(lines),
        tiles_(tiles),
        groups_((tiles + kGroup - 1) / kGroup),
        counter_(clearWords<uint32_t>(launch, 1 + all())),
        totals_(
            static_cast<Gathered*>(launch.scratch(static_cast<size_t>(all()) * sizeof(Gathered))),
            counter_ + 1) {}

  /// The tile that this block takes: its line, and its number in the line. All threads call it,
  /// once; there is a block for each tile.
  PUONE_DEVICE void draw(int64_t& line, int64_t& tile) const {
    const int64_t number = drawNumber(counter_);
    line = number % lines_;
    tile = number / lines_;
  }

  /// The total of a line's tiles before this one, whose own total is given. All threads call it.
  PUONE_DEVICE Gathered before(int64_t line, int64_t tile, const Gathered& own) const {
    PUONE_SHARED SharedArray<Gathered, 1> memory;
    const Op op{};
    const int64_t group = tile / kGroup, first = group * kGroup;
    if (threadIdx.x == 0) totals_.put(ofTile(line, tile), own);
    Gathered mine = op.nothing(), in_group;
    if (first + threadIdx.x < tile) mine = totals_.wait(ofTile(line, first + threadIdx.x));
    detail::before(op, mine, in_group);
    if (threadIdx.x == 0) {
      Gathered sum = in_group;
      if (group > 0) sum = op.combine(totals_.wait(beforeGroup(line, group)), sum);
      const bool last = tile + 1 == first + kGroup && tile + 1 < tiles_;
      if (last) totals_.put(beforeGroup(line, group + 1), op.combine(sum, own));
      memory.data()[0] = sum;
    }
    __syncthreads();
    return memory.data()[0];
  }

 private:
  int64_t all() const {
    return lines_ * (tiles_ + groups_);
  }
  // Where totals_ has the total of a tile; that of all tiles before a group.
  PUONE_FN int64_t ofTile(int64_t line, int64_t tile) const {
    return line * tiles_ + tile;
  }
  PUONE_FN int64_t beforeGroup(int64_t line, int64_t group) const {
    return lines_ * tiles_ + line * groups_ + group;
  }

  int64_t lines_, tiles_, groups_; // tiles and groups of a line
  uint32_t* counter_;
  Told<Gathered> totals_;
};

} // namespace puone::kernels::PUONE_ISA::detail
