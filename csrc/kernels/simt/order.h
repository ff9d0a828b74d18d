// SPDX-License-Identifier: BSD-3-Clause
// Lines of elements in order on a device. Elements become keys: unsigned integers in the wanted
// order. A block sorts a short line in shared memory; long lines use radix sort. Only the keys'
// size matters, so that there are two kinds of items for all element types.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

#include "kernels/bits.h"
#include "kernels/cast.h"
#include "kernels/dimensions.h"
#include "kernels/order.h"
#include "kernels/simt/axes.h"
#include "kernels/simt/blocks.h"
#include "kernels/simt/map.h"
#include "kernels/simt/radix_sort.h"
#include "kernels/simt/runs.h"
#include "kernels/target.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {
namespace ordering {

// ---- keys and items ----

template <class Bits>
constexpr Bits kTopBit = static_cast<Bits>(Bits{1} << (sizeof(Bits) * 8 - 1));

/// Flips the sign bit, so that negative integers come before positive ones as unsigned keys.
template <class Bits>
PUONE_FN Bits signedKey(Bits bits) {
  return bits ^ kTopBit<Bits>;
}

/// `infinity`: its bits. NaN is the largest key, and zeros are equal.
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

/// A total order, so that every sorting method is stable.
template <class Key>
struct Before {
  PUONE_FN bool operator()(const KeyedItem<Key>& a, const KeyedItem<Key>& b) const {
    return a.key != b.key ? a.key < b.key : a.position < b.position;
  }
};

/// Lines of at most this many elements are sorted in shared memory.
template <class Key>
constexpr uint32_t kShort = 16384 / sizeof(KeyedItem<Key>);

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
  int64_t size, wanted;   // elements of a line; how many of the first are wanted
  int64_t number;         // of lines
  bool descending, has_nan;
  int64_t steps[Dimensions::kStrides]; // from an element of a line to the next
  Axes<Dimensions::kStrides> lines;

  PUONE_FN Key key(const unsigned char* at) const {
    const auto directed = [&](auto key) {
      return static_cast<Key>(static_cast<decltype(key)>(descending ? ~key : key));
    };
    if (element == 1) return directed(keyOf<uint8_t>(at, dtype));
    if (element == 2) return directed(keyOf<uint16_t>(at, dtype));
    if (element == 4) return directed(keyOf<uint32_t>(at, dtype));
    return directed(keyOf<uint64_t>(at, dtype));
  }
  /// The key of NaN in ascending order.
  PUONE_FN Key nan() const {
    return static_cast<Key>(~Key{0}) >> (sizeof(Key) - element) * 8;
  }

  PUONE_FN KeyedItem<Key> item(const unsigned char* line, int64_t i) const {
    return {key(line + i * steps[0]), static_cast<std::make_signed_t<Key>>(i)};
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

  /// The index of the first of `end` sorted items whose key is not less than `key`.
  PUONE_FN int64_t lowerBound(const KeyedItem<Key>* items, int64_t end, Key key) const {
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

/// Writes the wanted results of sorted lines; the items of a line are at items + line * stride.
template <class Key>
class Results {
 public:
  Results(const Lines<Key>& lines, Wanted wanted) : lines(lines), wanted(wanted) {}

  PUONE_DEVICE void write(const Block& block, int64_t line, const KeyedItem<Key>* items) const {
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
  PUONE_DEVICE int64_t median(const KeyedItem<Key>* items) const {
    const int64_t numbers =
        lines.has_nan ? lines.lowerBound(items, lines.size, lines.nan()) : lines.size;
    // The first NaN comes after all numbers.
    const bool nan = wanted == Wanted::kNanMedian ? numbers == 0 : numbers < lines.size;
    return nan ? numbers : (numbers - 1) / 2;
  }

  /// The end of the first of the longest runs of equal items. NaNs are not equal.
  PUONE_DEVICE int64_t mode(const Block& block, const KeyedItem<Key>* items) const {
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
PUONE_GLOBAL(kMaxBlockThreads, 1)
void orderShort(Results<Key> results) {
  PUONE_SHARED SharedArray<KeyedItem<Key>, kShort<Key>> memory;
  KeyedItem<Key>* const items = memory.data();
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

template <class Key>
struct MakeItem {
  PUONE_DEVICE void operator()(int64_t i) const {
    const int64_t line = i / lines.size;
    items[i] = lines.item(lines.in + lines.lines.offset(line), i - line * lines.size);
  }
  Lines<Key> lines;
  KeyedItem<Key>* items;
};

template <class Key>
struct WriteSorted {
  PUONE_DEVICE void operator()(int64_t i) const {
    const int64_t line = i / lines.wanted, to = i - line * lines.wanted;
    int64_t at[Dimensions::kStrides] = {};
    lines.lines.add(line, at);
    lines.write(at, to, sorted.of(line)[to].position);
  }
  Lines<Key> lines;
  SortedItems<Key> sorted;
};

template <class Key>
struct WriteOne {
  PUONE_DEVICE void operator()(const Block& block, int64_t line) const {
    results.write(block, line, sorted.of(line));
  }
  Results<Key> results;
  SortedItems<Key> sorted;
};

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
    dialect::start<dialect::Threads::kCooperating>(
        launch.stream(),
        orderShort<Key>,
        static_cast<uint32_t>(std::min(lines.number, kMaxBlocks)),
        blockThreads(lines.size * 2),
        results);
    return;
  }
  auto* const items = reinterpret_cast<KeyedItem<Key>*>(launch.resolve(args.items));
  // The workspace has 16 bytes for each element.
  auto* const others = sizeof(KeyedItem<Key>) == 8
                           ? items + elements
                           : static_cast<KeyedItem<Key>*>(launch.scratch(
                                 static_cast<size_t>(elements) * sizeof(KeyedItem<Key>)));
  map(launch, elements, MakeItem<Key>{lines, items});
  const SortedItems<Key> sorted =
      radixSort(launch, items, others, lines.number, lines.size, lines.element * 8);
  if (wanted == Wanted::kSorted) {
    map(launch, lines.number * lines.wanted, WriteSorted<Key>{lines, sorted});
  } else {
    blocks(launch, lines.number, lines.size, WriteOne<Key>{results, sorted});
  }
}

} // namespace ordering

template <Wanted wanted>
void order(Launch& launch, const puone_order_args& args) {
  // Positions in a line have as many bits as keys.
  const bool wide = args.ordered >= 0 && args.sizes[args.ordered] > 0x7fffffff;
  if (wide || elementSize(args.dtype) == 8) {
    ordering::order<uint64_t>(launch, args, wanted);
  } else {
    ordering::order<uint32_t>(launch, args, wanted);
  }
}

} // namespace puone::kernels::PUONE_ISA
