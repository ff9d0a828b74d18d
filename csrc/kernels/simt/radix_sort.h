// SPDX-License-Identifier: BSD-3-Clause
// A stable radix sort of long lines of items by integer keys, from the lowest digit to the highest
// (Adinets & Merrill, Onesweep, arXiv:2206.01784). One launch counts all digits of all keys. Then
// each pass over the items reads and writes them once: a block takes a tile, sorts it by the pass's
// digit, and learns from the blocks of the tiles before it how many of their items have each digit.
// These are sums of integers: the result does not depend on which block was first.
//
// Where all keys of a line have the same digit, the pass is left out: so the line's own keys decide
// which of two arrays has its items in the end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/isa.h"
#include "kernels/launch.h"
#include "kernels/simt/between_blocks.h"
#include "kernels/simt/block_scan.h"
#include "kernels/simt/shared.h"
#include "kernels/target.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {

/// A key and the position of its element, which are read and written at once.
template <class Key>
struct alignas(2 * sizeof(Key)) KeyedItem {
  Key key;
  std::make_signed_t<Key> position;
};

/// Lines of items in order, each in one of two arrays.
template <class Key>
struct SortedItems {
  PUONE_FN const KeyedItem<Key>* of(int64_t line) const {
    return after(moves[line * (passes + 1) + passes], line);
  }
  /// Where a line is that was moved so often.
  PUONE_FN KeyedItem<Key>* after(uint32_t moved, int64_t line) const {
    return (moved % 2 == 0 ? items : others) + line * size;
  }
  KeyedItem<Key>*items, *others;
  int64_t size; // of a line
  int32_t passes;
  uint32_t* moves; // per line and pass, and after the last: how often the line was moved before it
};

namespace detail {

constexpr uint32_t kSortThreads = kScanThreads;
constexpr uint32_t kDigits = 256, kDigitBits = 8;
static_assert(kDigits == kSortThreads); // a thread for each digit
/// Contiguous items of a tile that a thread ranks.
template <class Key>
constexpr uint32_t kSortRun = 128 / sizeof(KeyedItem<Key>);
template <class Key>
constexpr uint32_t kSortTile = kSortThreads * kSortRun<Key>;

struct RunningCount {
  PUONE_FN uint32_t nothing() const {
    return 0;
  }
  PUONE_FN uint32_t combine(uint32_t a, uint32_t b) const {
    return a + b;
  }
};

template <class Key>
struct Sort : SortedItems<Key> {
  int64_t tiles;     // of a line
  uint32_t blocks;   // that count the digits of a line
  uint32_t* tickets; // per pass: the number of the next block
  uint32_t* counts;  // per line, pass and digit: items that have it; later, that have a lower one
  /// Per line, tile and digit: a stage, and below it 32 bits of a count. Stages grow from pass to
  /// pass, so that what earlier ones left is not taken for an answer.
  uint64_t* told;

  PUONE_FN static uint32_t digit(const KeyedItem<Key>& item, int32_t pass) {
    return static_cast<uint32_t>(item.key >> pass * static_cast<int32_t>(kDigitBits)) % kDigits;
  }
  /// Stages of a pass: the tile's items are counted; with those of all tiles before it.
  PUONE_FN static uint64_t counted(int32_t pass) {
    return static_cast<uint64_t>(2 * pass + 1);
  }
  PUONE_FN static uint64_t summed(int32_t pass) {
    return static_cast<uint64_t>(2 * pass + 2);
  }
  PUONE_FN uint32_t* countOf(int64_t line, int32_t pass, uint32_t digit) const {
    return counts + (line * this->passes + pass) * kDigits + digit;
  }
  PUONE_FN uint64_t* toldOf(int64_t line, int64_t tile, uint32_t digit) const {
    return told + (line * tiles + tile) * kDigits + digit;
  }
  /// Items of a tile.
  PUONE_FN uint32_t length(int64_t tile) const {
    const int64_t left = this->size - tile * kSortTile<Key>;
    return left < kSortTile<Key> ? static_cast<uint32_t>(left) : kSortTile<Key>;
  }
};

/// Counts a thread's digits in shared memory, equal ones in a row by one addition: those of many
/// threads to one place take turns.
struct DigitRun {
  PUONE_DEVICE void add(uint32_t* counts, uint32_t next) {
    if (next != digit) {
      end(counts);
      digit = next;
      length = 0;
    }
    ++length;
  }
  PUONE_DEVICE void end(uint32_t* counts) const {
    if (length > 0) atomicAdd(counts + digit, length);
  }
  uint32_t digit = 0, length = 0;
};

/// Counts the digits of all passes.
template <class Key>
PUONE_GLOBAL(kSortThreads, 1)
void countDigits(Sort<Key> sort) {
  constexpr int32_t kMost = sizeof(Key); // passes
  PUONE_SHARED SharedArray<uint32_t, kMost * kDigits> memory;
  uint32_t* const counts = memory.data();
  const int64_t line = blockIdx.x / sort.blocks;
  for (int32_t p = 0; p < sort.passes; ++p) counts[p * kDigits + threadIdx.x] = 0;
  __syncthreads();
  DigitRun runs[kMost];
  for (int64_t tile = blockIdx.x % sort.blocks; tile < sort.tiles; tile += sort.blocks) {
    const KeyedItem<Key>* const items = sort.after(0, line) + tile * kSortTile<Key>;
    const uint32_t n = sort.length(tile);
    for (uint32_t i = threadIdx.x; i < n; i += kSortThreads) {
      const KeyedItem<Key> item = items[i];
      PUONE_UNROLL
      for (int32_t p = 0; p < kMost; ++p) {
        if (p < sort.passes) runs[p].add(counts + p * kDigits, sort.digit(item, p));
      }
    }
  }
  PUONE_UNROLL
  for (int32_t p = 0; p < kMost; ++p) runs[p].end(counts + p * kDigits);
  __syncthreads();
  for (int32_t p = 0; p < sort.passes; ++p) {
    const uint32_t count = counts[p * kDigits + threadIdx.x];
    if (count > 0) atomicAdd(sort.countOf(line, p, threadIdx.x), count);
  }
}

/// One block per line: where the items of each digit begin, and which passes move the line.
template <class Key>
PUONE_GLOBAL(kSortThreads, 1)
void planMoves(Sort<Key> sort) {
  PUONE_SHARED SharedArray<uint32_t, 1> memory;
  uint32_t* const moved = memory.data();
  const int64_t line = blockIdx.x;
  uint32_t* const moves = sort.moves + line * (sort.passes + 1);
  if (threadIdx.x == 0) *moved = moves[0] = 0;
  for (int32_t p = 0; p < sort.passes; ++p) {
    uint32_t* const at = sort.countOf(line, p, threadIdx.x);
    const uint32_t count = *at;
    uint32_t all;
    *at = before(RunningCount(), count, all);
    // Exactly one digit is the first key's.
    if (threadIdx.x == sort.digit(*sort.after(0, line), p)) {
      *moved += count < all ? 1 : 0;
      moves[p + 1] = *moved;
    }
    __syncthreads();
  }
}

/// Where an item of a tile is in shared memory: runs of neighbouring threads begin in different
/// banks.
template <class Key>
PUONE_FN uint32_t slotOf(uint32_t i) {
  return i + i / kSortRun<Key>;
}
template <class Key>
constexpr uint32_t kSortSlots = kSortTile<Key> + kSortThreads;

/// Sorts the n items of a tile by 4 bits of their keys, stably. `counts` has one element per value
/// of these bits and thread.
template <class Key>
PUONE_DEVICE void rankSortTile(KeyedItem<Key>* items, uint32_t n, int32_t shift, uint16_t* counts) {
  constexpr uint32_t kValues = 16, kRun = kSortRun<Key>;
  const uint32_t first = threadIdx.x * kRun;
  for (uint32_t v = 0; v < kValues; ++v) counts[v * kSortThreads + threadIdx.x] = 0;
  __syncthreads();
  KeyedItem<Key> own[kRun];
  const auto place = [&](const KeyedItem<Key>& item) -> uint16_t& {
    return counts[static_cast<uint32_t>(item.key >> shift) % kValues * kSortThreads + threadIdx.x];
  };
  PUONE_UNROLL
  for (uint32_t e = 0; e < kRun; ++e) {
    if (first + e >= n) break;
    own[e] = items[slotOf<Key>(first) + e];
    ++place(own[e]);
  }
  __syncthreads();
  // Counts become destinations, two at a time.
  constexpr uint32_t kPairs = kValues / 2, kHalf = 16, kLow = 0xffff;
  uint16_t* const row = counts + threadIdx.x * kValues;
  uint32_t pairs[kPairs], sum = 0;
  PUONE_UNROLL
  for (uint32_t p = 0; p < kPairs; ++p) {
    pairs[p] = load<uint32_t>(row + 2 * p);
    sum += (pairs[p] & kLow) + (pairs[p] >> kHalf);
  }
  uint32_t all;
  sum = before(RunningCount(), sum, all);
  PUONE_UNROLL
  for (uint32_t p = 0; p < kPairs; ++p) {
    const uint32_t second = sum + (pairs[p] & kLow);
    store(row + 2 * p, sum | second << kHalf);
    sum = second + (pairs[p] >> kHalf);
  }
  __syncthreads();
  PUONE_UNROLL
  for (uint32_t e = 0; e < kRun; ++e) {
    if (first + e < n) items[slotOf<Key>(place(own[e])++)] = own[e];
  }
  __syncthreads();
}

/// How many items of the line's tiles before this one have the thread's digit. This tile has `own`.
template <class Key>
PUONE_DEVICE uint32_t
lookBack(const Sort<Key>& sort, int32_t pass, int64_t line, int64_t tile, uint32_t own) {
  uint64_t stage = 0;
  uint32_t sum = 0;
  for (int64_t t = tile; t > 0 && stage != sort.summed(pass); --t) {
    uint64_t word = 0;
    while (word >> 32 < sort.counted(pass)) hear(sort.toldOf(line, t - 1, threadIdx.x), word);
    stage = word >> 32;
    sum += static_cast<uint32_t>(word);
  }
  tell(sort.toldOf(line, tile, threadIdx.x), sort.summed(pass) << 32 | (sum + own));
  return sum;
}

template <class Key>
PUONE_GLOBAL(kSortThreads, 1)
void moveItems(Sort<Key> sort, int32_t pass) {
  PUONE_SHARED SharedArray<KeyedItem<Key>, kSortSlots<Key>> item_memory;
  PUONE_SHARED SharedArray<uint16_t, 16 * kSortThreads> count_memory;
  PUONE_SHARED SharedArray<uint32_t, kDigits> digit_memory;
  KeyedItem<Key>* const items = item_memory.data();
  uint32_t* const digits = digit_memory.data();
  const int64_t number = drawNumber(sort.tickets + pass);
  const int64_t line = number / sort.tiles, tile = number % sort.tiles;
  const uint32_t* const moves = sort.moves + line * (sort.passes + 1) + pass;
  if (moves[0] == moves[1]) return;
  const KeyedItem<Key>* const from = sort.after(moves[0], line) + tile * kSortTile<Key>;
  KeyedItem<Key>* const to = sort.after(moves[1], line);
  const uint32_t n = sort.length(tile);
  digits[threadIdx.x] = 0;
  __syncthreads();
  KeyedItem<Key> mine[kSortRun<Key>];
  PUONE_UNROLL
  for (uint32_t e = 0; e < kSortRun<Key>; ++e) {
    const uint32_t i = e * kSortThreads + threadIdx.x;
    if (i < n) mine[e] = from[i];
  }
  DigitRun run;
  PUONE_UNROLL
  for (uint32_t e = 0; e < kSortRun<Key>; ++e) {
    const uint32_t i = e * kSortThreads + threadIdx.x;
    if (i >= n) break;
    items[slotOf<Key>(i)] = mine[e];
    run.add(digits, sort.digit(mine[e], pass));
  }
  run.end(digits);
  __syncthreads();
  const uint32_t own = digits[threadIdx.x];
  const uint64_t stage = tile == 0 ? sort.summed(pass) : sort.counted(pass);
  tell(sort.toldOf(line, tile, threadIdx.x), stage << 32 | own);
  rankSortTile(items, n, pass * static_cast<int32_t>(kDigitBits), count_memory.data());
  rankSortTile(items, n, pass * static_cast<int32_t>(kDigitBits) + 4, count_memory.data());
  uint32_t all;
  const uint32_t in_tile = before(RunningCount(), own, all);
  // From an item's index in the tile to that in the line; unsigned numbers wrap.
  digits[threadIdx.x] =
      *sort.countOf(line, pass, threadIdx.x) + lookBack(sort, pass, line, tile, own) - in_tile;
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < n; i += kSortThreads) {
    const KeyedItem<Key> item = items[slotOf<Key>(i)];
    to[digits[sort.digit(item, pass)] + i] = item;
  }
}

} // namespace detail

/// Sorts each line of n items (n below 2^32) by the lowest `bits` of their keys; higher bits are 0.
/// The lines are then in `items` or `others`.
template <class Key>
SortedItems<Key> radixSort(
    Launch& launch,
    KeyedItem<Key>* items,
    KeyedItem<Key>* others,
    int64_t lines,
    int64_t n,
    int32_t bits) {
  using namespace detail;
  constexpr auto kBits = static_cast<int32_t>(kDigitBits);
  Sort<Key> sort{};
  sort.items = items;
  sort.others = others;
  sort.size = n;
  sort.passes = (bits + kBits - 1) / kBits;
  if (lines == 0 || n == 0) return sort;
  sort.tiles = (n + kSortTile<Key> - 1) / kSortTile<Key>;
  const int64_t counting = int64_t{launch.multiprocessors()} * 8 / lines;
  sort.blocks = static_cast<uint32_t>(std::clamp<int64_t>(counting, 1, sort.tiles));
  const auto moves = static_cast<size_t>(lines * (sort.passes + 1));
  sort.moves = static_cast<uint32_t*>(launch.scratch(moves * sizeof(uint32_t)));
  const int64_t told = lines * sort.tiles * kDigits;
  const int64_t halves = sort.passes + lines * sort.passes * kDigits;
  sort.told = clearWords<uint64_t>(launch, told + (halves + 1) / 2);
  sort.tickets = reinterpret_cast<uint32_t*>(sort.told + told);
  sort.counts = sort.tickets + sort.passes;
  const auto start = [&](auto kernel, int64_t blocks, const auto&... more) {
    dialect::start<dialect::Threads::kCooperating>(
        launch.stream(), kernel, static_cast<uint32_t>(blocks), kSortThreads, sort, more...);
  };
  start(countDigits<Key>, lines * sort.blocks);
  start(planMoves<Key>, lines);
  for (int32_t pass = 0; pass < sort.passes; ++pass) {
    start(moveItems<Key>, lines * sort.tiles, pass);
  }
  return sort;
}

/// order.cpp compiles it, for indexing.cpp too.
extern template SortedItems<uint64_t> radixSort(
    Launch& launch,
    KeyedItem<uint64_t>* items,
    KeyedItem<uint64_t>* others,
    int64_t lines,
    int64_t n,
    int32_t bits);

} // namespace puone::kernels::PUONE_ISA
