// SPDX-License-Identifier: BSD-3-Clause
// The elements of many tensors as one range, spread over the cores in pieces that fit the
// first-level cache.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

#include "kernels/args/multi_tensor.h"
#include "kernels/cast.h"
#include "kernels/isa.h"
#include "kernels/launch.h"
#include "kernels/strided.h"

namespace puone::kernels::PUONE_ISA {

/// Calls run(tensor, begin, end) for ranges of elements that cover all tensors; tensor t has
/// `args.tensors[t].n` elements.
template <class Args, class Run>
void forTensors(Launch& launch, const Args& args, const Run& run) {
  std::array<int64_t, PUONE_MAX_TENSORS + 1> start{};
  for (int t = 0; t < args.count; ++t) start[t + 1] = start[t] + args.tensors[t].n;
  launch.forRanges(start[args.count], kGrain, [&](int64_t begin, int64_t end) {
    for (int t = 0; t < args.count; ++t) {
      const int64_t first = std::max(begin, start[t]), last = std::min(end, start[t + 1]);
      if (first < last) run(t, first - start[t], last - start[t]);
    }
  });
}

/// Updates several arrays of one tensor in place: update(pointers, n) gets pieces as dense T; they
/// are cast from and to `dtype`. Null arrays stay null.
template <class T, size_t kArrays, class Update>
void updateArrays(
    std::array<unsigned char*, kArrays> data,
    int32_t dtype,
    int64_t begin,
    int64_t end,
    const Update& update) {
  constexpr int64_t kPiece = 256;
  const int64_t size = elementSize(dtype);
  for (unsigned char*& array : data) {
    if (array != nullptr) array += begin * size;
  }
  std::array<T*, kArrays> dense{};
  if (dtype == kDtype<T>) {
    for (size_t a = 0; a < kArrays; ++a) dense[a] = reinterpret_cast<T*>(data[a]);
    update(dense, end - begin);
    return;
  }
  const RowFunction in = castRowOf(kDtype<T>, dtype), out = castRowOf(dtype, kDtype<T>);
  alignas(64) unsigned char buffers[kArrays][kPiece * sizeof(T)];
  for (int64_t done = begin; done < end; done += kPiece) {
    const int64_t n = std::min(kPiece, end - done);
    for (size_t a = 0; a < kArrays; ++a) {
      if (data[a] == nullptr) continue;
      dense[a] = reinterpret_cast<T*>(buffers[a]);
      in(buffers[a], sizeof(T), data[a], size, n);
    }
    update(dense, n);
    for (size_t a = 0; a < kArrays; ++a) {
      if (data[a] == nullptr) continue;
      out(data[a], size, buffers[a], sizeof(T), n);
      data[a] += n * size;
    }
  }
}

} // namespace puone::kernels::PUONE_ISA
