// SPDX-License-Identifier: BSD-3-Clause
// Rearranged elements on a host: row by row.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "kernels/args/shape.h"
#include "kernels/bits.h"
#include "kernels/map.h"
#include "kernels/shape.h"
#include "kernels/strided.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {

/// Smaller copies (bytes) are not split over cores.
constexpr int64_t kByteGrain = 128 << 10;

inline void cat(Launch& launch, const puone_cat_args& args) {
  std::array<puone_part, PUONE_MAX_PARTS> parts;
  std::copy_n(args.parts, args.count, parts.begin());
  const auto parts_end = parts.begin() + args.count;
  int64_t width = 0;
  for (auto part = parts.begin(); part != parts_end; ++part) {
    part->data = launch.resolve(part->data);
    width += part->row_bytes;
  }
  unsigned char* out = launch.resolve(args.out);
  const int64_t first = parts[0].offset;
  // Ranges are bytes of the output, so that parts of any size are spread evenly.
  launch.forRanges(args.rows * width, kByteGrain, [&](int64_t begin, int64_t end) {
    int64_t row = begin / width;
    int64_t at = first + begin % width;
    auto part =
        std::upper_bound(parts.begin(), parts_end, at, [](int64_t value, const puone_part& p) {
          return value < p.offset;
        });
    --part;
    for (int64_t left = end - begin; left > 0;) {
      const int64_t done = at - part->offset;
      const int64_t n = std::min(left, part->row_bytes - done);
      std::memcpy(
          out + row * args.out_row_bytes + at,
          static_cast<const unsigned char*>(part->data) + row * part->row_bytes + done,
          static_cast<size_t>(n));
      left -= n;
      at += n;
      if (++part == parts_end) {
        part = parts.begin();
        at = first;
        ++row;
      }
    }
  });
}

template <class T>
void triangleRow(
    unsigned char* out,
    int64_t out_stride,
    const unsigned char* in,
    int64_t in_stride,
    int64_t keep_begin,
    int64_t keep_end,
    int64_t n) {
  const auto clear = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) store(out + i * out_stride, T{});
  };
  clear(0, keep_begin);
  if (out != in) {
    for (int64_t i = keep_begin; i < keep_end; ++i) {
      store(out + i * out_stride, load<T>(in + i * in_stride));
    }
  }
  clear(keep_end, n);
}

inline void triangle(Launch& launch, const puone_triangle_args& args) {
  unsigned char* out = launch.resolve(args.out.data);
  const unsigned char* in = launch.resolve(args.in.data);
  int64_t rows = 1;
  for (int32_t d = 1; d < args.ndim; ++d) rows *= args.sizes[d];
  const int64_t columns = args.sizes[0];
  const auto run_row = withBits(args.element_size, []<class T>(T) { return triangleRow<T>; });
  map(
      launch,
      rows,
      [=, &args](int64_t linear) {
        int64_t out_offset = 0, in_offset = 0, rest = linear;
        for (int32_t d = 1; d < args.ndim; ++d) {
          const int64_t index = rest % args.sizes[d];
          rest /= args.sizes[d];
          out_offset += index * args.out.strides[d];
          in_offset += index * args.in.strides[d];
        }
        const int64_t row = linear % args.sizes[1];
        const bool upper = args.upper != 0;
        const int64_t edge = row + args.diagonal + (upper ? 0 : 1);
        const int64_t inside = std::clamp<int64_t>(edge, 0, columns);
        run_row(
            out + out_offset,
            args.out.strides[0],
            in + in_offset,
            args.in.strides[0],
            upper ? inside : 0,
            upper ? columns : inside,
            columns);
      },
      kGrain / std::max<int64_t>(1, columns) + 1);
}

template <class T>
void repeatInterleaveOf(Launch& launch, const puone_repeat_args& args) {
  const auto* repeats = reinterpret_cast<const T*>(launch.resolve(args.repeats));
  const auto* ends = reinterpret_cast<const int64_t*>(launch.resolve(args.ends));
  auto* out = args.out_size == 0 ? nullptr : reinterpret_cast<T*>(launch.resolve(args.out));
  const IndexCheck check = repeatCheck(launch);
  map(launch, args.n, [=, out_size = args.out_size](int64_t i) {
    const int64_t end = ends[i], begin = end - repeats[i];
    if (!check(begin, end + 1) || !check(end, out_size + 1)) return;
    for (int64_t k = begin; k < end; ++k) out[k] = static_cast<T>(i);
  });
}

} // namespace puone::kernels::PUONE_ISA
