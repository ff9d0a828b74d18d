// SPDX-License-Identifier: BSD-3-Clause
// A stable sort of many items by integer keys, from the lowest digit to the highest. Every pass
// counts the digits of each tile, finds where each tile's items of each digit go, and takes them
// there.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>

#include "kernels/isa.h"
#include "kernels/launch.h"
#include "kernels/prefix.h"
#include "kernels/simt/blocks.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {

/// What a sorted place number belongs to.
struct KeyedItem {
  uint64_t key;
  int64_t position;
};

namespace detail {

constexpr int kDigitBits = 4;
constexpr int kDigits = 1 << kDigitBits;
/// Neighbouring items of one thread, and their number in a tile.
constexpr int64_t kSortRun = 4;
constexpr int64_t kSortTile = 2048;

/// How many items have each digit, 16 bits per count.
struct DigitCounts {
  static constexpr int kPerWord = 4;
  uint64_t words[kDigits / kPerWord] = {};

  PUONE_FN void add(uint32_t digit) {
    PUONE_UNROLL
    for (uint32_t w = 0; w < kDigits / kPerWord; ++w) {
      words[w] += digit / kPerWord == w ? uint64_t{1} << digit % kPerWord * 16 : 0;
    }
  }
  PUONE_FN int64_t of(uint32_t digit) const {
    uint64_t word = 0;
    PUONE_UNROLL
    for (uint32_t w = 0; w < kDigits / kPerWord; ++w)
      word = digit / kPerWord == w ? words[w] : word;
    return static_cast<int64_t>(word >> digit % kPerWord * 16 & 0xffff);
  }
};

struct AddCounts {
  PUONE_FN DigitCounts operator()(DigitCounts a, const DigitCounts& b) const {
    PUONE_UNROLL
    for (int w = 0; w < kDigits / DigitCounts::kPerWord; ++w) a.words[w] += b.words[w];
    return a;
  }
};

/// One pass over the digit that starts at bit `shift`.
struct DigitPass {
  const KeyedItem* in;
  KeyedItem* out;
  int64_t n, tiles;
  int64_t* starts; // [digit][tile]: counts, then where the first such item goes
  int shift;

  PUONE_FN uint32_t digit(const KeyedItem& item) const {
    return static_cast<uint32_t>(item.key >> shift) & (kDigits - 1);
  }
  /// The digits of a thread's items.
  PUONE_FN DigitCounts count(int64_t tile, int64_t run) const {
    DigitCounts counts;
    const int64_t first = tile * kSortTile + run * kSortRun;
    for (int64_t i = first; i < first + kSortRun && i < n; ++i) counts.add(digit(in[i]));
    return counts;
  }
};

struct CountTile {
  PUONE_DEVICE void operator()(const Block& block, int64_t tile) const {
    const DigitPass& p = pass;
    const DigitCounts counts = block.reduce(
        kSortTile / kSortRun,
        DigitCounts(),
        [&](int64_t run) { return p.count(tile, run); },
        AddCounts());
    block.each(kDigits, [&](int64_t digit) {
      p.starts[digit * p.tiles + tile] = counts.of(static_cast<uint32_t>(digit));
    });
  }
  DigitPass pass;
};

struct ScatterTile {
  PUONE_DEVICE void operator()(const Block& block, int64_t tile) const {
    const DigitPass& p = pass;
    block.scan(
        kSortTile / kSortRun,
        DigitCounts(),
        [&](int64_t run) { return p.count(tile, run); },
        AddCounts(),
        [&](int64_t run, DigitCounts before) {
          // Up to the thread's last item; from there backwards.
          const int64_t first = tile * kSortTile + run * kSortRun;
          DigitCounts taken;
          for (int64_t i = first + kSortRun; i-- > first;) {
            if (i >= p.n) continue;
            const KeyedItem item = p.in[i];
            const uint32_t digit = p.digit(item);
            taken.add(digit);
            const int64_t rank = before.of(digit) - taken.of(digit);
            p.out[p.starts[digit * p.tiles + tile] + rank] = item;
          }
        });
  }
  DigitPass pass;
};

} // namespace detail

/// Sorts n items by the lowest `bits` of their keys; returns where they are then: `items`, or a
/// scratch.
inline const KeyedItem* radixSort(Launch& launch, KeyedItem* items, int64_t n, int bits) {
  using namespace detail;
  if (n == 0 || bits == 0) return items;
  const int64_t tiles = (n + kSortTile - 1) / kSortTile;
  auto* const starts =
      static_cast<int64_t*>(launch.scratch(static_cast<size_t>(tiles * kDigits) * sizeof(int64_t)));
  auto* other = static_cast<KeyedItem*>(launch.scratch(static_cast<size_t>(n) * sizeof(KeyedItem)));
  for (int shift = 0; shift < bits; shift += kDigitBits) {
    const DigitPass pass{items, other, n, tiles, starts, shift};
    blocks(launch, tiles, kSortTile, CountTile{pass});
    exclusiveSums(launch, starts, tiles * kDigits);
    blocks(launch, tiles, kSortTile, ScatterTile{pass});
    std::swap(items, other);
  }
  return items;
}

} // namespace puone::kernels::PUONE_ISA
