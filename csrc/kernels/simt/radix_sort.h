// SPDX-License-Identifier: BSD-3-Clause
// A stable radix sort of long lines of items by integer keys, from the lowest digit to the highest.
// Every pass counts the digits of each tile, turns the counts into destinations by a prefix sum,
// and moves the items of each tile there.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/args/reduction.h"
#include "kernels/isa.h"
#include "kernels/launch.h"
#include "kernels/scan.h"
#include "kernels/simt/blocks.h"
#include "kernels/simt/runs.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {

/// A key and the position of its element.
template <class Key>
struct KeyedItem {
  Key key;
  std::make_signed_t<Key> position;
};

namespace detail {

constexpr uint32_t kSortThreads = kScanThreads;
constexpr uint32_t kSortRun = 8; // contiguous items of a tile that a thread ranks
constexpr uint32_t kSortTile = kSortThreads * kSortRun;
constexpr uint32_t kDigits = 256, kDigitBits = 8;

struct RunningCount {
  using In = uint32_t;
  using Gathered = uint32_t;
  PUONE_FN uint32_t nothing() const {
    return 0;
  }
  PUONE_FN uint32_t step(uint32_t all, uint32_t x, int64_t /*position*/) const {
    return all + x;
  }
  PUONE_FN uint32_t combine(uint32_t a, uint32_t b) const {
    return a + b;
  }
  PUONE_FN uint32_t result(uint32_t all) const {
    return all;
  }
};

/// Lines of counts are dense and have at least kDigits elements.
template <>
constexpr bool kScansByThread<RunningCount> = false;

/// One pass: moves all items by one digit of their keys.
template <class Key>
struct Move {
  const KeyedItem<Key>* from;
  KeyedItem<Key>* to;
  uint32_t* counts; // per line, digit and tile; then their inclusive prefix sums
  int64_t size, tiles;
  int32_t shift; // of the digit

  PUONE_FN uint32_t digit(const KeyedItem<Key>& item) const {
    return static_cast<uint32_t>(item.key >> shift) % kDigits;
  }
  /// The index of a tile's count of a digit.
  PUONE_FN int64_t count(int64_t line, uint32_t digit, int64_t tile) const {
    return (line * kDigits + digit) * tiles + tile;
  }
  /// Items of a tile.
  PUONE_FN uint32_t length(int64_t tile) const {
    const int64_t left = size - tile * kSortTile;
    return left < kSortTile ? static_cast<uint32_t>(left) : kSortTile;
  }
};

template <class Key>
PUONE_GLOBAL(kSortThreads, 1)
void countDigits(Move<Key> move) {
  PUONE_SHARED SharedArray<uint32_t, kDigits> memory;
  static_assert(kDigits == kSortThreads);
  uint32_t* const counts = memory.data();
  const int64_t line = blockIdx.x / move.tiles, tile = blockIdx.x % move.tiles;
  const KeyedItem<Key>* const items = move.from + line * move.size + tile * kSortTile;
  const uint32_t n = move.length(tile);
  counts[threadIdx.x] = 0;
  __syncthreads();
  PUONE_UNROLL
  for (uint32_t e = 0; e < kSortRun; ++e) {
    const uint32_t i = e * kSortThreads + threadIdx.x;
    if (i < n) atomicAdd(&counts[move.digit(items[i])], 1u);
  }
  __syncthreads();
  move.counts[move.count(line, threadIdx.x, tile)] = counts[threadIdx.x];
}

/// Sorts the n items of a tile by 4 bits of their keys, stably. `counts` has one element per value
/// of these bits and thread.
template <class Key>
PUONE_DEVICE void rankSortTile(KeyedItem<Key>* items, uint32_t n, int32_t shift, uint16_t* counts) {
  constexpr uint32_t kValues = 16;
  const uint32_t first = threadIdx.x * kSortRun;
  for (uint32_t v = 0; v < kValues; ++v) counts[v * kSortThreads + threadIdx.x] = 0;
  __syncthreads();
  KeyedItem<Key> own[kSortRun];
  const auto place = [&](const KeyedItem<Key>& item) -> uint16_t& {
    return counts[static_cast<uint32_t>(item.key >> shift) % kValues * kSortThreads + threadIdx.x];
  };
  PUONE_UNROLL
  for (uint32_t e = 0; e < kSortRun; ++e) {
    if (first + e >= n) break;
    own[e] = items[first + e];
    ++place(own[e]);
  }
  __syncthreads();
  // Counts become destinations.
  uint16_t* const row = counts + threadIdx.x * kValues;
  uint32_t sum = 0;
  for (uint32_t v = 0; v < kValues; ++v) sum += row[v];
  uint32_t all;
  sum = before(RunningCount(), sum, all);
  for (uint32_t v = 0; v < kValues; ++v) {
    const uint32_t count = row[v];
    row[v] = static_cast<uint16_t>(sum);
    sum += count;
  }
  __syncthreads();
  PUONE_UNROLL
  for (uint32_t e = 0; e < kSortRun; ++e) {
    if (first + e < n) items[place(own[e])++] = own[e];
  }
  __syncthreads();
}

template <class Key>
PUONE_GLOBAL(kSortThreads, 1)
void moveItems(Move<Key> move) {
  PUONE_SHARED SharedArray<KeyedItem<Key>, kSortTile> item_memory;
  PUONE_SHARED SharedArray<uint16_t, 16 * kSortThreads> count_memory;
  PUONE_SHARED SharedArray<uint32_t, kDigits> start_memory;
  KeyedItem<Key>* const items = item_memory.data();
  uint32_t* const starts = start_memory.data(); // of each digit in the tile
  const int64_t line = blockIdx.x / move.tiles, tile = blockIdx.x % move.tiles;
  const KeyedItem<Key>* const from = move.from + line * move.size + tile * kSortTile;
  const uint32_t n = move.length(tile);
  PUONE_UNROLL
  for (uint32_t e = 0; e < kSortRun; ++e) {
    const uint32_t i = e * kSortThreads + threadIdx.x;
    if (i < n) items[i] = from[i];
  }
  __syncthreads();
  rankSortTile(items, n, move.shift, count_memory.data());
  rankSortTile(items, n, move.shift + 4, count_memory.data());
  for (uint32_t i = threadIdx.x; i < n; i += kSortThreads) {
    const uint32_t digit = move.digit(items[i]);
    if (i == 0 || move.digit(items[i - 1]) != digit) starts[digit] = i;
  }
  __syncthreads();
  KeyedItem<Key>* const to = move.to + line * move.size;
  for (uint32_t i = threadIdx.x; i < n; i += kSortThreads) {
    const uint32_t digit = move.digit(items[i]);
    const int64_t count = move.count(line, digit, tile);
    const uint32_t first = digit == 0 && tile == 0 ? 0 : move.counts[count - 1];
    to[first + (i - starts[digit])] = items[i];
  }
}

/// Replaces each line's counts by their inclusive prefix sums.
template <class Key>
void addUp(Launch& launch, const Move<Key>& move, int64_t lines) {
  const int64_t length = move.tiles * kDigits;
  puone_scan_args args{};
  args.ndim = 2;
  args.in_dtype = args.out_dtypes[0] = PUONE_UINT32;
  args.sizes[0] = length;
  args.sizes[1] = lines;
  args.in.data = move.counts;
  args.in.strides[0] = sizeof *move.counts;
  args.in.strides[1] = static_cast<int64_t>(sizeof *move.counts) * length;
  args.outs[0] = args.in;
  scan<RunningCount>(launch, args);
}

} // namespace detail

/// Sorts each line of n items (n below 2^32) by the lowest `bits` of their keys; higher bits are 0.
/// Returns the array that then has the items: `items` or `others`.
template <class Key>
KeyedItem<Key>* radixSort(
    Launch& launch,
    KeyedItem<Key>* items,
    KeyedItem<Key>* others,
    int64_t lines,
    int64_t n,
    int32_t bits) {
  using namespace detail;
  if (lines == 0 || n == 0) return items;
  const int64_t tiles = (n + kSortTile - 1) / kSortTile;
  auto* const counts = static_cast<uint32_t*>(
      launch.scratch(static_cast<size_t>(lines * tiles) * kDigits * sizeof(uint32_t)));
  const auto start = [&](void (*kernel)(Move<Key>), const Move<Key>& move) {
    dialect::start<dialect::Threads::kCooperating>(
        launch.stream(), kernel, static_cast<uint32_t>(lines * tiles), kSortThreads, move);
  };
  for (int32_t shift = 0; shift < bits; shift += static_cast<int32_t>(kDigitBits)) {
    const Move<Key> move{items, others, counts, n, tiles, shift};
    start(countDigits<Key>, move);
    addUp(launch, move, lines);
    start(moveItems<Key>, move);
    std::swap(items, others);
  }
  return items;
}

/// order.cpp compiles it, for indexing.cpp too.
extern template KeyedItem<uint64_t>* radixSort(
    Launch& launch,
    KeyedItem<uint64_t>* items,
    KeyedItem<uint64_t>* others,
    int64_t lines,
    int64_t n,
    int32_t bits);

} // namespace puone::kernels::PUONE_ISA
