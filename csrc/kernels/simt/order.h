// SPDX-License-Identifier: BSD-3-Clause
// Lines of elements in order on a device. Elements become keys: unsigned integers in the wanted
// order. A short line is sorted by a block, in its memory; long ones by radix, from the lowest
// digit of the keys to the highest, many blocks to a line: count the digits of each tile, add the
// counts up to places, move the items of each tile there. All is done with the keys' bits, so that
// there are two kinds of items, whatever the types.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "kernels/args/reduction.h"
#include "kernels/bits.h"
#include "kernels/cast.h"
#include "kernels/dimensions.h"
#include "kernels/order.h"
#include "kernels/scan.h"
#include "kernels/simt/axes.h"
#include "kernels/simt/blocks.h"
#include "kernels/simt/map.h"
#include "kernels/simt/runs.h"
#include "kernels/target.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {
namespace ordering {

// ---- keys and items ----

template <class Bits>
constexpr Bits kTopBit = static_cast<Bits>(Bits{1} << (sizeof(Bits) * 8 - 1));

/// Negative integers lie behind positive ones, as bits; here before.
template <class Bits>
PUONE_FN Bits signedKey(Bits bits) {
  return bits ^ kTopBit<Bits>;
}

/// `infinity`: its bits. NaN is the largest of all, and zeros are equal.
template <class Bits>
PUONE_FN Bits floatKey(Bits bits, Bits infinity) {
  const Bits magnitude = bits & static_cast<Bits>(~kTopBit<Bits>);
  if (magnitude > infinity) return static_cast<Bits>(~Bits{0});
  if (magnitude == 0) return kTopBit<Bits>;
  return (bits & kTopBit<Bits>) != 0 ? static_cast<Bits>(~bits)
                                     : static_cast<Bits>(bits | kTopBit<Bits>);
}

template <class Bits>
PUONE_FN Bits keyOf(const unsigned char* at, int32_t dtype) {
  const Bits bits = load<Bits>(at);
  switch (dtype) {
    case PUONE_INT8:
    case PUONE_INT16:
    case PUONE_INT32:
    case PUONE_INT64:
      return signedKey(bits);
    case PUONE_FLOAT16:
      return floatKey(bits, static_cast<Bits>(0x7c00));
    case PUONE_BFLOAT16:
      return floatKey(bits, static_cast<Bits>(0x7f80));
    case PUONE_FLOAT32:
      return floatKey(bits, static_cast<Bits>(0x7f800000));
    case PUONE_FLOAT64:
      return floatKey(bits, static_cast<Bits>(0x7ff0000000000000));
  }
  return bits;
}

/// Of a line, whose elements are counted in as many bits as a key has.
template <class Key>
struct Item {
  Key key, position;
};

/// A total order, so that a sort by it is stable whatever its method.
template <class Key>
struct Before {
  PUONE_FN bool operator()(const Item<Key>& a, const Item<Key>& b) const {
    return a.key != b.key ? a.key < b.key : a.position < b.position;
  }
};

/// Lines of at most this many elements are sorted in a block's memory.
template <class Key>
constexpr uint32_t kShort = 16384 / sizeof(Item<Key>);

// ---- the lines ----

template <class Key>
struct Lines {
  Lines(
      Launch& launch,
      const puone_order_args& args,
      const Dimensions& along,
      const Dimensions& across)
      : in(launch.resolve(args.in.data)),
        outs{launch.resolve(args.outs[0].data), launch.resolve(args.outs[1].data)},
        dtype(args.dtype),
        element(elementSize(args.dtype)),
        size(along.elements()),
        wanted(args.count),
        number(across.elements()),
        descending(args.descending != 0),
        has_nan(args.dtype >= PUONE_FLOAT16),
        steps{along.stride(0), along.stride(1), along.stride(2)},
        lines(across) {}

  const unsigned char* in;
  unsigned char* outs[2];
  int32_t dtype, element; // bytes of an element
  int64_t size, wanted;   // elements of a line, and of those the first that are wanted
  int64_t number;         // of lines
  bool descending, has_nan;
  int64_t steps[Dimensions::kStrides]; // from an element of a line to the next
  Axes<Dimensions::kStrides> lines;

  PUONE_FN Key key(const unsigned char* at) const {
    const auto directed = [&](auto key) {
      return static_cast<Key>(static_cast<decltype(key)>(descending ? ~key : key));
    };
    if constexpr (sizeof(Key) == 8) {
      return directed(keyOf<uint64_t>(at, dtype));
    } else {
      if (element == 1) return directed(keyOf<uint8_t>(at, dtype));
      if (element == 2) return directed(keyOf<uint16_t>(at, dtype));
      return directed(keyOf<uint32_t>(at, dtype));
    }
  }
  /// The key of NaN, of lines in ascending order.
  PUONE_FN Key nan() const {
    return static_cast<Key>(~Key{0}) >> (sizeof(Key) - element) * 8;
  }

  PUONE_FN Item<Key> item(const unsigned char* line, int64_t i) const {
    return {key(line + i * steps[0]), static_cast<Key>(i)};
  }

  /// Writes the element at `position` of a line as its result number `to`.
  PUONE_FN void write(const int64_t* at, int64_t to, int64_t position) const {
    const unsigned char* const from = in + at[0] + position * steps[0];
    unsigned char* const value = outs[0] + at[1] + to * steps[1];
    if (element == 1) store(value, load<uint8_t>(from));
    if (element == 2) store(value, load<uint16_t>(from));
    if (element == 4) store(value, load<uint32_t>(from));
    if (element == 8) store(value, load<uint64_t>(from));
    store(outs[1] + at[2] + to * steps[2], position);
  }

  /// The first of `size` items in order whose key is not less.
  PUONE_FN int64_t lowerBound(const Item<Key>* items, int64_t end, Key key) const {
    int64_t begin = 0;
    while (begin < end) {
      const int64_t middle = begin + (end - begin) / 2;
      if (items[middle].key < key) {
        begin = middle + 1;
      } else {
        end = middle;
      }
    }
    return begin;
  }
};

/// What is wanted of lines that are in order, items of a line at items + line * stride.
template <class Key>
class Results {
 public:
  Results(const Lines<Key>& lines, Wanted wanted) : lines(lines), wanted(wanted) {}

  PUONE_DEVICE void write(const Block& block, int64_t line, const Item<Key>* items) const {
    int64_t at[Dimensions::kStrides] = {};
    lines.lines.add(line, at);
    if (wanted == Wanted::kSorted) {
      block.each(lines.wanted, [&](int64_t i) { lines.write(at, i, items[i].position); });
      return;
    }
    const int64_t found = wanted == Wanted::kMode  ? mode(block, items)
                          : wanted == Wanted::kKth ? lines.wanted - 1
                                                   : median(items);
    block.once([&] { lines.write(at, 0, items[found].position); });
  }

  Lines<Key> lines;
  Wanted wanted;

 private:
  PUONE_DEVICE int64_t median(const Item<Key>* items) const {
    const int64_t numbers =
        lines.has_nan ? lines.lowerBound(items, lines.size, lines.nan()) : lines.size;
    // The first NaN is behind all numbers.
    const bool nan = wanted == Wanted::kNanMedian ? numbers == 0 : numbers < lines.size;
    return nan ? numbers : (numbers - 1) / 2;
  }

  /// The end of the longest run of equal items, the first of such. No NaN equals another.
  PUONE_DEVICE int64_t mode(const Block& block, const Item<Key>* items) const {
    struct Run {
      int64_t length, last;
    };
    const int64_t n = lines.size;
    const Run longest = block.reduce(
        n,
        Run{0, n},
        [=, this](int64_t i) {
          const Key key = items[i].key;
          if (lines.has_nan && key == lines.nan()) return Run{1, i};
          if (i + 1 < n && items[i + 1].key == key) return Run{0, n};
          return Run{i + 1 - lines.lowerBound(items, i, key), i};
        },
        [](const Run& a, const Run& b) {
          const bool second = a.length != b.length ? a.length < b.length : b.last < a.last;
          return second ? b : a;
        });
    return longest.last;
  }
};

// ---- short lines ----

template <class Key>
PUONE_GLOBAL void orderShort(Results<Key> results) {
  PUONE_SHARED SharedArray<Item<Key>, kShort<Key>> memory;
  Item<Key>* const items = memory.data();
  const Block block;
  const Lines<Key>& lines = results.lines;
  for (int64_t line = blockIdx.x; line < lines.number; line += gridDim.x) {
    const unsigned char* const in = lines.in + lines.lines.offset(line);
    block.each(lines.size, [&](int64_t i) { items[i] = lines.item(in, i); });
    block.sort(items, lines.size, lines.size, Before<Key>());
    results.write(block, line, items);
  }
}

// ---- long lines ----

constexpr uint32_t kThreads = detail::kScanThreads;
constexpr uint32_t kOwn = 8; // items of a tile that a thread ranks in a row
constexpr uint32_t kTile = kThreads * kOwn;
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

/// One move of all items, by a digit of their keys.
template <class Key>
struct Move {
  const Item<Key>* from;
  Item<Key>* to;
  uint32_t* counts; // of each line, digit and tile; then those up to and with it
  int64_t size, tiles;
  int32_t shift; // of the digit

  PUONE_FN uint32_t digit(const Item<Key>& item) const {
    return static_cast<uint32_t>(item.key >> shift) % kDigits;
  }
  /// Where a tile's count of a digit is.
  PUONE_FN int64_t count(int64_t line, uint32_t digit, int64_t tile) const {
    return (line * kDigits + digit) * tiles + tile;
  }
  /// Items of a tile.
  PUONE_FN uint32_t length(int64_t tile) const {
    const int64_t left = size - tile * kTile;
    return left < kTile ? static_cast<uint32_t>(left) : kTile;
  }
};

template <class Key>
PUONE_GLOBAL void countDigits(Move<Key> move) {
  PUONE_SHARED SharedArray<uint32_t, kDigits> memory;
  static_assert(kDigits == kThreads);
  uint32_t* const counts = memory.data();
  const int64_t line = blockIdx.x / move.tiles, tile = blockIdx.x % move.tiles;
  const Item<Key>* const items = move.from + line * move.size + tile * kTile;
  const uint32_t n = move.length(tile);
  counts[threadIdx.x] = 0;
  __syncthreads();
  PUONE_UNROLL
  for (uint32_t e = 0; e < kOwn; ++e) {
    const uint32_t i = e * kThreads + threadIdx.x;
    if (i < n) atomicAdd(&counts[move.digit(items[i])], 1u);
  }
  __syncthreads();
  move.counts[move.count(line, threadIdx.x, tile)] = counts[threadIdx.x];
}

/// Puts the n items of a tile in the order of 4 bits of their keys, what is equal as it was.
/// counts: one per value of the bits and thread.
template <class Key>
PUONE_DEVICE void rankTile(Item<Key>* items, uint32_t n, int32_t shift, uint16_t* counts) {
  constexpr uint32_t kValues = 16;
  const uint32_t first = threadIdx.x * kOwn;
  for (uint32_t v = 0; v < kValues; ++v) counts[v * kThreads + threadIdx.x] = 0;
  __syncthreads();
  Item<Key> own[kOwn];
  const auto place = [&](const Item<Key>& item) -> uint16_t& {
    return counts[static_cast<uint32_t>(item.key >> shift) % kValues * kThreads + threadIdx.x];
  };
  PUONE_UNROLL
  for (uint32_t e = 0; e < kOwn; ++e) {
    if (first + e >= n) break;
    own[e] = items[first + e];
    ++place(own[e]);
  }
  __syncthreads();
  // Counts become places.
  uint16_t* const row = counts + threadIdx.x * kValues;
  uint32_t sum = 0;
  for (uint32_t v = 0; v < kValues; ++v) sum += row[v];
  uint32_t all;
  sum = detail::before(RunningCount(), sum, all);
  for (uint32_t v = 0; v < kValues; ++v) {
    const uint32_t count = row[v];
    row[v] = static_cast<uint16_t>(sum);
    sum += count;
  }
  __syncthreads();
  PUONE_UNROLL
  for (uint32_t e = 0; e < kOwn; ++e) {
    if (first + e < n) items[place(own[e])++] = own[e];
  }
  __syncthreads();
}

template <class Key>
PUONE_GLOBAL void moveItems(Move<Key> move) {
  PUONE_SHARED SharedArray<Item<Key>, kTile> item_memory;
  PUONE_SHARED SharedArray<uint16_t, 16 * kThreads> count_memory;
  PUONE_SHARED SharedArray<uint32_t, kDigits> start_memory;
  Item<Key>* const items = item_memory.data();
  uint32_t* const starts = start_memory.data(); // of each digit in the tile
  const int64_t line = blockIdx.x / move.tiles, tile = blockIdx.x % move.tiles;
  const Item<Key>* const from = move.from + line * move.size + tile * kTile;
  const uint32_t n = move.length(tile);
  PUONE_UNROLL
  for (uint32_t e = 0; e < kOwn; ++e) {
    const uint32_t i = e * kThreads + threadIdx.x;
    if (i < n) items[i] = from[i];
  }
  __syncthreads();
  rankTile(items, n, move.shift, count_memory.data());
  rankTile(items, n, move.shift + 4, count_memory.data());
  for (uint32_t i = threadIdx.x; i < n; i += kThreads) {
    const uint32_t digit = move.digit(items[i]);
    if (i == 0 || move.digit(items[i - 1]) != digit) starts[digit] = i;
  }
  __syncthreads();
  Item<Key>* const to = move.to + line * move.size;
  for (uint32_t i = threadIdx.x; i < n; i += kThreads) {
    const uint32_t digit = move.digit(items[i]);
    const int64_t count = move.count(line, digit, tile);
    const uint32_t before = digit == 0 && tile == 0 ? 0 : move.counts[count - 1];
    to[before + (i - starts[digit])] = items[i];
  }
}

template <class Key>
struct MakeItem {
  PUONE_DEVICE void operator()(int64_t i) const {
    const int64_t line = i / lines.size;
    items[i] = lines.item(lines.in + lines.lines.offset(line), i - line * lines.size);
  }
  Lines<Key> lines;
  Item<Key>* items;
};

template <class Key>
struct WriteSorted {
  PUONE_DEVICE void operator()(int64_t i) const {
    const int64_t line = i / lines.wanted, to = i - line * lines.wanted;
    int64_t at[Dimensions::kStrides] = {};
    lines.lines.add(line, at);
    lines.write(at, to, items[line * lines.size + to].position);
  }
  Lines<Key> lines;
  const Item<Key>* items;
};

template <class Key>
struct WriteOne {
  PUONE_DEVICE void operator()(const Block& block, int64_t line) const {
    results.write(block, line, items + line * results.lines.size);
  }
  Results<Key> results;
  const Item<Key>* items;
};

/// Makes counts[line][...] the sums of what is there up to and with it.
inline void addUp(Launch& launch, uint32_t* counts, int64_t lines, int64_t length) {
  puone_scan_args args{};
  args.ndim = 2;
  args.in_dtype = args.out_dtypes[0] = PUONE_UINT32;
  args.sizes[0] = length;
  args.sizes[1] = lines;
  args.in.data = counts;
  args.in.strides[0] = sizeof *counts;
  args.in.strides[1] = static_cast<int64_t>(sizeof *counts) * length;
  args.outs[0] = args.in;
  detail::scan<RunningCount>(launch, args);
}

/// Sorts the lines by radix; gives where the items are then: `items`, or `others`.
template <class Key>
Item<Key>* radixSort(Launch& launch, const Lines<Key>& lines, Item<Key>* items, Item<Key>* others) {
  const int64_t tiles = (lines.size + kTile - 1) / kTile;
  auto* const counts = static_cast<uint32_t*>(
      launch.scratch(static_cast<size_t>(lines.number * tiles) * kDigits * sizeof(uint32_t)));
  const auto start = [&](void (*kernel)(Move<Key>), const Move<Key>& move) {
    dialect::start<dialect::Threads::kTogether>(
        launch.stream(), kernel, static_cast<uint32_t>(lines.number * tiles), kThreads, move);
  };
  map(launch, lines.number * lines.size, MakeItem<Key>{lines, items});
  const int32_t bits = lines.element * 8;
  for (int32_t shift = 0; shift < bits; shift += static_cast<int32_t>(kDigitBits)) {
    const Move<Key> move{items, others, counts, lines.size, tiles, shift};
    start(countDigits<Key>, move);
    addUp(launch, counts, lines.number, tiles * kDigits);
    start(moveItems<Key>, move);
    std::swap(items, others);
  }
  return items;
}

template <class Key>
void order(Launch& launch, const puone_order_args& args, Wanted wanted) {
  Dimensions along, across;
  for (int32_t d = 0; d < args.ndim; ++d) {
    (d == args.ordered ? along : across)
        .add(args.sizes[d], {args.in.strides[d], args.outs[0].strides[d], args.outs[1].strides[d]});
  }
  const Lines<Key> lines(launch, args, along, across);
  const Results<Key> results(lines, wanted);
  const int64_t elements = lines.size * lines.number;
  if (elements == 0) return;
  if (args.dtype > PUONE_FLOAT64) throw std::invalid_argument("the elements have no order");
  if (lines.size > 0xffffffff) throw std::invalid_argument("a line is too long to be ordered");
  if (lines.size <= kShort<Key>) {
    dialect::start<dialect::Threads::kTogether>(
        launch.stream(),
        orderShort<Key>,
        static_cast<uint32_t>(std::min(lines.number, kMaxBlocks)),
        blockThreads(lines.size * 2),
        results);
    return;
  }
  auto* const items = reinterpret_cast<Item<Key>*>(launch.resolve(args.items));
  // The workspace has 16 bytes for each element.
  auto* const others = sizeof(Item<Key>) == 8
                           ? items + elements
                           : static_cast<Item<Key>*>(
                                 launch.scratch(static_cast<size_t>(elements) * sizeof(Item<Key>)));
  const Item<Key>* const sorted = radixSort(launch, lines, items, others);
  if (wanted == Wanted::kSorted) {
    map(launch, lines.number * lines.wanted, WriteSorted<Key>{lines, sorted});
  } else {
    blocks(launch, lines.number, lines.size, WriteOne<Key>{results, sorted});
  }
}

} // namespace ordering

template <Wanted wanted>
void order(Launch& launch, const puone_order_args& args) {
  if (elementSize(args.dtype) == 8) {
    ordering::order<uint64_t>(launch, args, wanted);
  } else {
    ordering::order<uint32_t>(launch, args, wanted);
  }
}

} // namespace puone::kernels::PUONE_ISA
