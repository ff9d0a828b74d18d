// SPDX-License-Identifier: BSD-3-Clause
// Sorted lines of elements on a host: one core per line.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "kernels/blocks.h"
#include "kernels/cast.h"
#include "kernels/dimensions.h"
#include "kernels/elementwise.h"
#include "kernels/order.h"

namespace puone::kernels::PUONE_ISA {
namespace ordering {

template <class T>
struct Item {
  T key;
  int64_t position;
};

/// A total order, so that every sorting method is stable.
template <class T>
struct Before {
  bool descending;

  PUONE_FN bool operator()(const Item<T>& a, const Item<T>& b) const {
    const bool less = (a.key < b.key) | ((a.key == a.key) & (b.key != b.key));
    const bool greater = (b.key < a.key) | ((b.key == b.key) & (a.key != a.key));
    return less | greater ? less != descending : a.position < b.position;
  }
};

/// The lines of a launch. A line is in the workspace while it is processed.
template <class T>
class Lines {
 public:
  static_assert(sizeof(Item<T>) == 16);

  Lines(Launch& launch, const puone_order_args& args)
      : count(args.count),
        before{args.descending != 0},
        dtype_(args.dtype),
        in_(launch.resolve(args.in.data)),
        outs_{launch.resolve(args.outs[0].data), launch.resolve(args.outs[1].data)},
        items_(reinterpret_cast<Item<T>*>(launch.resolve(args.items))) {
    for (int32_t d = 0; d < args.ndim; ++d) {
      (d == args.ordered ? along_ : lines_)
          .add(
              args.sizes[d],
              {args.in.strides[d], args.outs[0].strides[d], args.outs[1].strides[d]});
    }
    size = along_.elements();
  }

  /// Calls body(block, line, items) for each line.
  template <class Body>
  void each(Launch& launch, const Body& body) const {
    blocks(launch, lines_.elements(), size * 16, [&, this](const Block& block, int64_t line) {
      Item<T>* const items = items_ + line * size;
      const Cursor cursor(lines_, line);
      castRowOf(kDtype<T>, dtype_)(
          reinterpret_cast<unsigned char*>(items),
          sizeof *items,
          in_ + cursor.offset(0),
          along_.stride(0),
          size);
      block.each(size, [=](int64_t i) { items[i].position = i; });
      body(block, cursor, items);
    });
  }

  /// Writes n items as the line's result.
  void write(const Cursor& cursor, const Item<T>* items, int64_t n) const {
    castRowOf(dtype_, kDtype<T>)(
        outs_[0] + cursor.offset(1),
        along_.stride(1),
        reinterpret_cast<const unsigned char*>(&items->key),
        sizeof *items,
        n);
    castRowOf(PUONE_INT64, PUONE_INT64)(
        outs_[1] + cursor.offset(2),
        along_.stride(2),
        reinterpret_cast<const unsigned char*>(&items->position),
        sizeof *items,
        n);
  }

  int64_t size, count;
  Before<T> before;

 private:
  int32_t dtype_;
  const unsigned char* in_;
  unsigned char* outs_[2];
  Item<T>* items_;
  Dimensions along_, lines_;
};

template <Wanted wanted>
struct Operation;

template <>
struct Operation<Wanted::kSorted> {
  template <class T>
  void operator()(
      const Block& block, const Lines<T>& lines, const Cursor& cursor, Item<T>* items) const {
    block.sort(items, lines.size, lines.count, lines.before);
    lines.write(cursor, items, lines.count);
  }
};

template <>
struct Operation<Wanted::kKth> {
  template <class T>
  void operator()(
      const Block& block, const Lines<T>& lines, const Cursor& cursor, Item<T>* items) const {
    block.select(items, lines.size, lines.count - 1, lines.before);
    lines.write(cursor, items + lines.count - 1, 1);
  }
};

template <bool kIgnoreNan>
struct Median {
  template <class T>
  void operator()(
      const Block& block, const Lines<T>& lines, const Cursor& cursor, Item<T>* items) const {
    const int64_t numbers = block.reduce(
        lines.size,
        int64_t{0},
        [=](int64_t i) { return static_cast<int64_t>(items[i].key == items[i].key); },
        [](int64_t a, int64_t b) { return a + b; });
    // The first NaN comes after all numbers.
    const bool nan = kIgnoreNan ? numbers == 0 : numbers < lines.size;
    const int64_t middle = nan ? numbers : (numbers - 1) / 2;
    block.select(items, lines.size, middle, lines.before);
    lines.write(cursor, items + middle, 1);
  }
};

template <>
struct Operation<Wanted::kMedian> : Median<false> {};
template <>
struct Operation<Wanted::kNanMedian> : Median<true> {};

template <>
struct Operation<Wanted::kMode> {
  template <class T>
  void operator()(
      const Block& block, const Lines<T>& lines, const Cursor& cursor, Item<T>* items) const {
    block.sort(items, lines.size, lines.size, lines.before);
    block.once([&] {
      int64_t best = 0, most = 0, run = 0;
      for (int64_t i = 0; i < lines.size; ++i) {
        run = i > 0 && items[i].key == items[i - 1].key ? run + 1 : 1;
        if (run > most) {
          most = run;
          best = i;
        }
      }
      lines.write(cursor, items + best, 1);
    });
  }
};

template <class Operation, class... T>
void dispatch(Launch& launch, const puone_order_args& args, ComputeTypes<T...> /*types*/) {
  const auto on = [&](const auto& lines) {
    lines.each(launch, [&](const Block& block, const Cursor& cursor, auto* items) {
      Operation()(block, lines, cursor, items);
    });
    return true;
  };
  const bool found = ((args.compute == kDtype<T> && on(Lines<T>(launch, args))) || ...);
  if (!found) throw std::invalid_argument("the kernel does not order this dtype");
}

} // namespace ordering

template <Wanted wanted>
void order(Launch& launch, const puone_order_args& args) {
  ordering::dispatch<ordering::Operation<wanted>>(launch, args, Ordered{});
}

} // namespace puone::kernels::PUONE_ISA
