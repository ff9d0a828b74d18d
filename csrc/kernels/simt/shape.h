// SPDX-License-Identifier: BSD-3-Clause
// Rearranged elements on a device: one thread per element of the output.
#pragma once

#include <cstdint>

#include "kernels/args/shape.h"
#include "kernels/bits.h"
#include "kernels/shape.h"
#include "kernels/simt/map.h"
#include "kernels/simt/strided.h"
#include "kernels/strided.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {
namespace shape {

/// Rows of `length`: splits an index into row and column. Fast up to kMaxElements.
class RowsOf {
 public:
  RowsOf(int64_t length, int64_t n)
      : length_(length),
        small_(n < kMaxElements && length < kMaxElements),
        divider_(small_ ? static_cast<uint32_t>(length) : 1) {}

  /// Returns the row; `i` becomes the column.
  PUONE_FN int64_t split(int64_t& i) const {
    if (small_) {
      auto rest = static_cast<uint32_t>(i);
      const int64_t row = divider_.divide(rest);
      i = rest;
      return row;
    }
    const int64_t row = i / length_;
    i %= length_;
    return row;
  }

 private:
  int64_t length_;
  bool small_;
  Divider divider_;
};

/// Copies words of T; offsets and lengths of `args` are in bytes.
template <class T>
struct CatWord {
  PUONE_DEVICE void operator()(int64_t i) const {
    const int64_t row = rows.split(i);
    const int64_t at = args.parts[0].offset + i * static_cast<int64_t>(sizeof(T));
    int64_t low = 0, high = args.count - 1; // the last part whose offset is at most `at`
    while (low < high) {
      const int64_t middle = (low + high + 1) / 2;
      if (args.parts[middle].offset <= at) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    const puone_part& part = args.parts[low];
    const auto* const from = static_cast<const unsigned char*>(part.data);
    store(
        static_cast<unsigned char*>(args.out) + row * args.out_row_bytes + at,
        load<T>(from + row * part.row_bytes + at - part.offset));
  }
  puone_cat_args args; // no part is empty
  RowsOf rows;
};

template <class T>
struct TriangleElement {
  PUONE_DEVICE void operator()(unsigned char* const* at, int64_t i) const {
    int64_t column = i;
    int64_t row = columns.split(column);
    rows.split(row);
    const int64_t above = column - row - diagonal;
    if (upper ? above < 0 : above > 0) {
      store(at[0], T{});
    } else if (!in_place) {
      store(at[0], load<T>(at[1]));
    }
  }
  RowsOf columns, rows;
  int64_t diagonal;
  bool upper, in_place;
};

/// The index of the first element of `ends` above k.
PUONE_FN int64_t firstBehind(const int64_t* ends, int64_t n, int64_t k) {
  int64_t low = 0, high = n - 1;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (ends[middle] > k) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

} // namespace shape

inline void cat(Launch& launch, const puone_cat_args& given) {
  shape::CatWord<uint8_t> bytes{given, {1, 1}};
  puone_cat_args& args = bytes.args;
  args.out = launch.resolve(args.out);
  args.count = 0;
  int64_t width = 0;
  // The word length is a divisor of all of these.
  uint64_t all = reinterpret_cast<uintptr_t>(args.out) | static_cast<uint64_t>(args.out_row_bytes);
  for (int64_t p = 0; p < given.count; ++p) {
    puone_part part = given.parts[p];
    if (part.row_bytes == 0) continue;
    part.data = launch.resolve(part.data);
    all |= reinterpret_cast<uintptr_t>(part.data) | static_cast<uint64_t>(part.offset) |
           static_cast<uint64_t>(part.row_bytes);
    width += part.row_bytes;
    args.parts[args.count++] = part;
  }
  if (width == 0) return;
  const uint64_t lowest = all & (~all + 1);
  withBits(lowest == 0 || lowest > 16 ? 16 : static_cast<int32_t>(lowest), [&]<class T>(T) {
    const int64_t words = width / static_cast<int64_t>(sizeof(T));
    const int64_t n = words * args.rows;
    map(launch, n, shape::CatWord<T>{args, {words, n}});
  });
}

inline void triangle(Launch& launch, const puone_triangle_args& args) {
  // Do not merge rows and columns.
  LoopNest<2> nest;
  nest.ndim = args.ndim;
  nest.data = {launch.resolve(args.out.data), launch.resolve(args.in.data)};
  for (int32_t d = 0; d < args.ndim; ++d) {
    nest.sizes[d] = args.sizes[d];
    nest.strides[0][d] = args.out.strides[d];
    nest.strides[1][d] = args.in.strides[d];
  }
  const int64_t n = nest.elements();
  if (n == 0) return;
  withBits(args.element_size, [&]<class T>(T) {
    forElements(
        launch,
        nest,
        shape::TriangleElement<T>{
            {args.sizes[0], n},
            {args.sizes[1], n},
            args.diagonal,
            args.upper != 0,
            nest.data[0] == nest.data[1]});
  });
}

template <class T>
void repeatInterleaveOf(Launch& launch, const puone_repeat_args& args) {
  const auto* const repeats = reinterpret_cast<const T*>(launch.resolve(args.repeats));
  const auto* const ends = reinterpret_cast<const int64_t*>(launch.resolve(args.ends));
  auto* const out = args.out_size == 0 ? nullptr : reinterpret_cast<T*>(launch.resolve(args.out));
  const IndexCheck check = repeatCheck(launch);
  const int64_t n = args.n, out_size = args.out_size;
  map(launch, n, [=] PUONE_DEVICE(int64_t i) {
    const int64_t end = ends[i], begin = end - repeats[i];
    if (check(begin, end + 1)) check(end, out_size + 1);
  });
  if (n == 0) return;
  map(launch, out_size, [=] PUONE_DEVICE(int64_t k) {
    out[k] = static_cast<T>(shape::firstBehind(ends, n, k));
  });
}

} // namespace puone::kernels::PUONE_ISA
