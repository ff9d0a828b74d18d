// SPDX-License-Identifier: BSD-3-Clause
// Elements found by indices on a device. Reads use one thread per element. Several writes may have
// the same destination in the table, so the destination of each write is computed first. Writes are
// divided into segments; only writes of the same segment can conflict. With many or short segments,
// one thread performs all writes of a segment in order. Otherwise a stable sort groups the writes
// by destination, and one thread performs all writes to a destination. Sums that are the same in
// every order, or for which any order is permitted, need none of this: threads add atomically.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "kernels/args/indexing.h"
#include "kernels/bits.h"
#include "kernels/index_check.h"
#include "kernels/indexing.h"
#include "kernels/simt/atomic_add.h"
#include "kernels/simt/map.h"
#include "kernels/simt/radix_sort.h"
#include "kernels/simt/strided.h"
#include "kernels/strided.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {
namespace indexed {

/// Segments of at most this many writes are always processed by one thread each.
constexpr int64_t kShortSegment = 16;
/// With at least this many segments, one thread per segment fills the device.
constexpr int64_t kManySegments = 16384;

/// The destinations in a table that indices choose from, numbered; the last index is the fastest.
template <int kIndices>
class Choices {
 public:
  explicit Choices(const puone_indexing_args& args) : count_(args.index_count) {
    for (int k = 0; k < count_; ++k) {
      sizes_[k] = args.index_sizes[k];
      strides_[k] = args.index_strides[k];
    }
  }

  int64_t count() const {
    int64_t all = 1;
    for (int k = 0; k < count_; ++k) all *= sizes_[k];
    return all;
  }
  PUONE_FN int indices() const {
    return kIndices == 1 ? 1 : count_;
  }
  PUONE_FN int64_t size(int k) const {
    return sizes_[k];
  }
  PUONE_FN int64_t stride(int k) const {
    return strides_[k];
  }

  /// Offset in the table, in bytes.
  PUONE_FN int64_t offset(int64_t number) const {
    int64_t offset = 0;
    for (int k = indices() - 1; k > 0; --k) {
      offset += number % sizes_[k] * strides_[k];
      number /= sizes_[k];
    }
    return offset + number * strides_[0];
  }

 private:
  int32_t count_;
  int64_t sizes_[kIndices] = {}, strides_[kIndices] = {};
};

/// Reads indices.
template <int kIndices>
class Chooser {
 public:
  Chooser(Launch& launch, const puone_indexing_args& args)
      : choices_(args),
        int64_(args.index_dtype == PUONE_INT64),
        wraps_(args.wraps != 0),
        check_(launch, args.name) {}

  /// Calls each(k, index) for the indices at `at`. Returns false if one is out of bounds.
  template <class Each>
  PUONE_DEVICE bool read(unsigned char* const* at, const Each& each) const {
    bool valid = true;
    for (int k = 0; k < choices_.indices(); ++k) {
      const int64_t given = int64_ ? load<int64_t>(at[k]) : int64_t{load<int32_t>(at[k])};
      const int64_t index = given < 0 && wraps_ ? given + choices_.size(k) : given;
      if (static_cast<uint64_t>(index) >= static_cast<uint64_t>(choices_.size(k))) {
        valid = check_(given, choices_.size(k)); // false
      }
      each(k, index);
    }
    return valid;
  }

  /// The number of the destination; -1 if an index is out of bounds.
  PUONE_DEVICE int64_t number(unsigned char* const* at) const {
    int64_t number = 0;
    const bool valid =
        read(at, [&](int k, int64_t index) { number = number * choices_.size(k) + index; });
    return valid ? number : -1;
  }

  /// The destination's offset in bytes. Returns false if an index is out of bounds.
  PUONE_DEVICE bool offset(unsigned char* const* at, int64_t& offset) const {
    offset = 0;
    return read(at, [&](int k, int64_t index) { offset += index * choices_.stride(k); });
  }

 private:
  Choices<kIndices> choices_;
  bool int64_, wraps_;
  IndexCheck check_;
};

/// The table, the elements and the indices. With `for_writing`, the dimensions along which writes
/// can conflict are the innermost.
template <int kIndices>
LoopNest<2 + kIndices> nestOf(Launch& launch, const puone_indexing_args& args, bool for_writing) {
  std::array<puone_operand, 2 + kIndices> operands;
  operands[0] = args.table;
  operands[1] = args.immediate != 0 ? args.table : args.elements;
  for (int k = 0; k < kIndices; ++k) {
    operands[2 + k] = k < args.index_count ? args.index[k] : args.table;
  }
  std::array<int64_t, PUONE_MAX_DIMS> order, sizes;
  for (int32_t d = 0; d < args.ndim; ++d) order[d] = d;
  const auto conflicts = [&](int64_t d) { return args.table.strides[d] == 0; };
  if (for_writing) std::stable_partition(order.begin(), order.begin() + args.ndim, conflicts);
  auto ordered = operands;
  std::array<const puone_operand*, 2 + kIndices> pointers;
  for (int o = 0; o < 2 + kIndices; ++o) {
    for (int32_t d = 0; d < args.ndim; ++d) ordered[o].strides[d] = operands[o].strides[order[d]];
    pointers[o] = &ordered[o];
  }
  for (int32_t d = 0; d < args.ndim; ++d) sizes[d] = args.sizes[order[d]];
  return loopNest<2 + kIndices>(launch, args.ndim, sizes.data(), pointers);
}

/// Treats rows of whole 16-byte words as rows of such words. Returns the size of an element.
template <int kOperands>
int32_t widened(LoopNest<kOperands>& nest, const puone_indexing_args& args) {
  constexpr int64_t kWord = sizeof(Bits128);
  const int32_t size = args.element_size;
  if (args.immediate != 0) return size;
  int32_t along = -1;
  for (int32_t d = 0; d < nest.ndim; ++d) {
    bool row = nest.strides[0][d] == size && nest.strides[1][d] == size;
    for (int o = 2; o < 2 + args.index_count; ++o) row = row && nest.strides[o][d] == 0;
    if (row) along = d;
  }
  if (along < 0 || nest.sizes[along] * size % kWord != 0) return size;
  int64_t all = 0;
  for (int o = 0; o < 2; ++o) {
    all |= static_cast<int64_t>(reinterpret_cast<uintptr_t>(nest.data[o]));
    for (int32_t d = 0; d < nest.ndim; ++d) all |= d == along ? 0 : nest.strides[o][d];
  }
  for (int k = 0; k < args.index_count; ++k) all |= args.index_strides[k];
  if (all % kWord != 0) return size;
  nest.sizes[along] = nest.sizes[along] * size / kWord;
  for (auto& strides : nest.strides) strides[along] = strides[along] * kWord / size;
  return kWord;
}

// ---- reading ----

template <class T, int kIndices>
struct GetElement {
  PUONE_DEVICE void operator()(unsigned char* const* at, int64_t /*i*/) const {
    int64_t offset;
    if (chooser.offset(at + 2, offset)) store(at[1], load<T>(at[0] + offset));
  }
  Chooser<kIndices> chooser;
};

template <int kIndices>
void get(Launch& launch, const puone_indexing_args& args) {
  auto nest = nestOf<kIndices>(launch, args, false);
  const Chooser<kIndices> chooser(launch, args);
  withBits(widened(nest, args), [&]<class T>(T) {
    forElements(launch, nest, GetElement<T, kIndices>{chooser});
  });
}

// ---- writing ----

/// The writes of a nest and their numbers: number = segment * segment_size + index in the segment.
/// Only writes of the same segment can have the same destination.
struct Writes {
  int64_t segment_size, segments;
  int64_t keyed;        // writes with a key: all, or only segment 0 if all segments share its keys
  int64_t columns;      // segments that share the keys, else 1
  int64_t destinations; // that indices choose from; key = segment * destinations + destination
  int64_t keys;         // number of keys; also the key of a write whose index is out of bounds
};

template <int kIndices>
struct KeyWrite {
  PUONE_DEVICE void operator()(int64_t i) const {
    unsigned char* at[2 + kIndices];
    nest.at(static_cast<uint32_t>(i), at);
    const int64_t number = chooser.number(at + 2);
    const int64_t key =
        number < 0 ? writes.keys : i / writes.segment_size * writes.destinations + number;
    items[i] = {static_cast<uint64_t>(key), i};
  }
  ElementAddresses<2 + kIndices> nest;
  Chooser<kIndices> chooser;
  Writes writes;
  KeyedItem<uint64_t>* items;
};

/// The values to write: elements, or one value for all.
template <class T>
struct Elements {
  explicit Elements(const puone_indexing_args& args)
      : value(load<T>(args.value)), immediate(args.immediate != 0) {}
  PUONE_DEVICE T at(const unsigned char* element) const {
    return immediate ? value : load<T>(element);
  }
  T value;
  bool immediate;
};

/// One thread per segment: performs its writes in order.
template <class T, class F>
struct WriteSegment {
  PUONE_DEVICE void operator()(int64_t segment) const {
    const int64_t own = writes.columns == 1 ? segment : 0;
    const KeyedItem<uint64_t>* const mine = items + own * writes.segment_size;
    for (int64_t i = 0; i < writes.segment_size; ++i) {
      const auto key = static_cast<int64_t>(mine[i].key);
      if (key == writes.keys) continue;
      unsigned char* at[2];
      nest.at(static_cast<uint32_t>(segment * writes.segment_size + i), at);
      unsigned char* const table = at[0] + choices.offset(key - own * writes.destinations);
      store(table, f(load<T>(table), elements.at(at[1])));
    }
  }
  ElementAddresses<2> nest;
  Choices<PUONE_MAX_INDICES> choices;
  Writes writes;
  const KeyedItem<uint64_t>* items;
  Elements<T> elements;
  F f;
};

/// One thread per write and column. The thread of the first write to a destination performs all
/// writes to it; the others do nothing.
template <class T, class F>
struct WriteSorted {
  static constexpr int kAhead = 4;

  PUONE_DEVICE void operator()(int64_t i) const {
    const KeyedItem<uint64_t>* const items = sorted.of(0);
    auto column = static_cast<uint32_t>(i);
    const int64_t first = columns.divide(column);
    const uint64_t key = items[first].key;
    if (static_cast<int64_t>(key) == writes.keys) return;
    if (first > 0 && items[first - 1].key == key) return;
    const int64_t before = column * writes.segment_size;
    unsigned char* at[2];
    nest.at(static_cast<uint32_t>(before + items[first].position), at);
    unsigned char* const table =
        at[0] + choices.offset(static_cast<int64_t>(key) % writes.destinations);
    T value = load<T>(table);
    for (int64_t s = first, n = kAhead; n == kAhead; s += kAhead) {
      T next[kAhead];
      n = 0;
      PUONE_UNROLL
      for (int a = 0; a < kAhead; ++a) {
        if (s + a >= writes.keyed || items[s + a].key != key) continue;
        nest.at(static_cast<uint32_t>(before + items[s + a].position), at);
        next[a] = elements.at(at[1]);
        n = a + 1;
      }
      PUONE_UNROLL
      for (int a = 0; a < kAhead; ++a) {
        if (a < n) value = f(value, next[a]);
      }
    }
    store(table, value);
  }
  ElementAddresses<2> nest;
  Choices<PUONE_MAX_INDICES> choices;
  Writes writes;
  Divider columns;
  SortedItems<uint64_t> sorted;
  Elements<T> elements;
  F f;
};

template <int kIndices>
Writes writesOf(const LoopNest<2 + kIndices>& nest, const puone_indexing_args& args) {
  Writes writes{1, 1, 0, 1, Choices<kIndices>(args).count(), 0};
  bool shared = true;
  for (int32_t d = 0; d < nest.ndim; ++d) {
    const bool conflicts = nest.strides[0][d] == 0;
    (conflicts ? writes.segment_size : writes.segments) *= nest.sizes[d];
    for (int k = 0; k < args.index_count; ++k) shared &= conflicts || nest.strides[2 + k][d] == 0;
  }
  writes.keyed = writes.segment_size * (shared ? 1 : writes.segments);
  writes.columns = shared ? writes.segments : 1;
  writes.keys = writes.destinations * (shared ? 1 : writes.segments);
  return writes;
}

/// table = f(table, element), for all writes in order.
template <class T, int kIndices, class F>
void write(
    Launch& launch,
    const LoopNest<2 + kIndices>& nest,
    const puone_indexing_args& args,
    const Chooser<kIndices>& chooser,
    const F& f) {
  const Choices<PUONE_MAX_INDICES> choices(args);
  // Pieces run one after the other, so their writes are in order, too.
  forPieces(nest, [&](const LoopNest<2 + kIndices>& piece, int64_t) {
    const Writes writes = writesOf<kIndices>(piece, args);
    const size_t bytes = static_cast<size_t>(writes.keyed) * sizeof(KeyedItem<uint64_t>);
    auto* const items = static_cast<KeyedItem<uint64_t>*>(launch.scratch(bytes));
    map(launch,
        writes.keyed,
        KeyWrite<kIndices>{ElementAddresses<2 + kIndices>(piece), chooser, writes, items});
    LoopNest<2> pair;
    pair.ndim = piece.ndim;
    pair.sizes = piece.sizes;
    pair.data = {piece.data[0], piece.data[1]};
    pair.strides = {piece.strides[0], piece.strides[1]};
    const ElementAddresses<2> at(pair);
    const bool shared = writes.columns == writes.segments;
    if (writes.segment_size <= kShortSegment || (!shared && writes.segments >= kManySegments)) {
      map(launch,
          writes.segments,
          WriteSegment<T, F>{at, choices, writes, items, Elements<T>(args), f});
      return;
    }
    const SortedItems<uint64_t> sorted = radixSort(
        launch,
        items,
        static_cast<KeyedItem<uint64_t>*>(launch.scratch(bytes)),
        1,
        writes.keyed,
        static_cast<int32_t>(std::bit_width(static_cast<uint64_t>(writes.keys))));
    const Divider columns(static_cast<uint32_t>(writes.columns));
    map(launch,
        writes.keyed * writes.columns,
        WriteSorted<T, F>{at, choices, writes, columns, sorted, Elements<T>(args), f});
  });
}

template <class T>
struct Replace {
  PUONE_FN T operator()(T /*old*/, T element) const {
    return element;
  }
};

template <int kIndices>
void put(Launch& launch, const puone_indexing_args& args) {
  auto nest = nestOf<kIndices>(launch, args, true);
  const Chooser<kIndices> chooser(launch, args);
  withBits(widened(nest, args), [&]<class T>(T) {
    write<T, kIndices>(launch, nest, args, chooser, Replace<T>{});
  });
}

/// The reduction is chosen at run time; it is the same for all threads.
template <class T>
struct Join {
  using C = Compute<T>;
  PUONE_FN T operator()(T old, T element) const {
    return cast<T>(joined(cast<C>(old), cast<C>(element)));
  }
  PUONE_FN C joined(C a, C b) const {
    if (reduction == PUONE_REDUCE_SUM) return Sum::combine(a, b);
    if (reduction == PUONE_REDUCE_PRODUCT) return Product::combine(a, b);
    if constexpr (!kIsComplex<T>) {
      return reduction == PUONE_REDUCE_MINIMUM ? Minimum::combine(a, b) : Maximum::combine(a, b);
    }
    return a;
  }
  int32_t reduction;
};

template <class T, int kIndices>
struct AddElement {
  PUONE_DEVICE void operator()(unsigned char* const* at, int64_t /*i*/) const {
    int64_t offset;
    if (chooser.offset(at + 2, offset)) addAtomically(at[0] + offset, elements.at(at[1]));
  }
  Chooser<kIndices> chooser;
  Elements<T> elements;
};

/// Adds the elements in any order, if that is possible and permitted.
template <class T, int kIndices>
bool addInAnyOrder(
    Launch& launch, const puone_indexing_args& args, const Chooser<kIndices>& chooser) {
  if constexpr (kAddsAtomically<T>) {
    if (args.reduction != PUONE_REDUCE_SUM) return false;
    if (!kSumsExactly<T> && args.any_order == 0) return false;
    forElements(
        launch,
        nestOf<kIndices>(launch, args, false),
        AddElement<T, kIndices>{chooser, Elements<T>(args)});
    return true;
  }
  return false;
}

template <int kIndices, class... T>
void reduceAny(Launch& launch, const puone_indexing_args& args) {
  const bool sums = args.reduction == PUONE_REDUCE_SUM || args.reduction == PUONE_REDUCE_PRODUCT;
  const bool compares =
      args.reduction == PUONE_REDUCE_MINIMUM || args.reduction == PUONE_REDUCE_MAXIMUM;
  const auto nest = nestOf<kIndices>(launch, args, true);
  const Chooser<kIndices> chooser(launch, args);
  const auto reduce = [&]<class Element>(Element) {
    if (!sums && (!compares || kIsComplex<Element>)) {
      throw std::invalid_argument("no such reduction in this dtype");
    }
    if (!addInAnyOrder<Element, kIndices>(launch, args, chooser)) {
      write<Element, kIndices>(launch, nest, args, chooser, Join<Element>{args.reduction});
    }
    return true;
  };
  const bool found = ((args.dtype == kDtype<T> && reduce(T{})) || ...);
  if (!found) throw std::invalid_argument("the kernel does not reduce in this dtype");
}

template <int kIndices>
void reduce(Launch& launch, const puone_indexing_args& args) {
  reduceAny<
      kIndices,
      Bool,
      uint8_t,
      int8_t,
      int16_t,
      int32_t,
      int64_t,
      Half,
      BFloat16,
      float,
      double,
      Complex<float>,
      Complex<double>>(launch, args);
}

} // namespace indexed

inline void indexGet(Launch& launch, const puone_indexing_args& args) {
  args.index_count == 1 ? indexed::get<1>(launch, args)
                        : indexed::get<PUONE_MAX_INDICES>(launch, args);
}

inline void indexPut(Launch& launch, const puone_indexing_args& args) {
  args.index_count == 1 ? indexed::put<1>(launch, args)
                        : indexed::put<PUONE_MAX_INDICES>(launch, args);
}

inline void indexReduce(Launch& launch, const puone_indexing_args& args) {
  args.index_count == 1 ? indexed::reduce<1>(launch, args)
                        : indexed::reduce<PUONE_MAX_INDICES>(launch, args);
}

} // namespace puone::kernels::PUONE_ISA
