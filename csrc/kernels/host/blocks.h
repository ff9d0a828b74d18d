// SPDX-License-Identifier: BSD-3-Clause
// The block idiom on a host: a block is one thread, and a reduction runs over kLanes interleaved
// parts, so that it vectorises.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/isa.h"
#include "kernels/launch.h"
#include "kernels/strided.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {

class Block {
 public:
  /// f(i) for every i in [0, n).
  template <class F>
  void each(int64_t n, const F& f) const {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) f(i);
  }

  /// Combines load(0) ... load(n - 1) in a fixed, unspecified order; `identity` if n is 0. Every
  /// thread gets the result.
  template <class T, class Load, class Combine>
  T reduce(int64_t n, T identity, const Load& load, const Combine& combine) const {
    constexpr int kLanes = 16;
    T lanes[kLanes];
    for (T& lane : lanes) lane = identity;
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      for (int l = 0; l < kLanes; ++l) lanes[l] = combine(lanes[l], load(i + l));
    }
    for (int l = 0; i < n; ++i, ++l) lanes[l] = combine(lanes[l], load(i));
    for (int width = kLanes / 2; width > 0; width /= 2) {
      for (int l = 0; l < width; ++l) lanes[l] = combine(lanes[l], lanes[l + width]);
    }
    return lanes[0];
  }

  /// Calls store(i, combination of load(0) ... load(i)) for every i in [0, n), in order.
  template <class T, class Load, class Combine, class Store>
  void scan(
      int64_t n, T identity, const Load& load, const Combine& combine, const Store& store) const {
    T sum = identity;
    for (int64_t i = 0; i < n; ++i) {
      sum = combine(sum, load(i));
      store(i, sum);
    }
  }

  /// Sorts the first `wanted` of n items to the front by `before`, a total order.
  template <class Item, class Before>
  void sort(Item* items, int64_t n, int64_t wanted, const Before& before) const {
    if (wanted <= n / 16) return std::partial_sort(items, items + wanted, items + n, before);
    if (wanted <= n / 2) std::nth_element(items, items + wanted, items + n, before);
    std::sort(items, items + (wanted <= n / 2 ? wanted : n), before);
  }

  /// Partitions the items so that items[rank] is the one with `rank` items before it.
  template <class Item, class Before>
  void select(Item* items, int64_t n, int64_t rank, const Before& before) const {
    std::nth_element(items, items + rank, items + n, before);
  }

  /// One thread of the block calls f().
  template <class F>
  void once(const F& f) const {
    f();
  }
};

/// Calls body(block, index) for every index in [0, count), spread over cores. `work`: number of
/// elements per block.
template <class Body>
void blocks(Launch& launch, int64_t count, int64_t work, const Body& body) {
  const int64_t grain = kGrain / (work > 0 ? work : 1);
  launch.forRanges(count, grain > 0 ? grain : 1, [&](int64_t begin, int64_t end) {
    Block block;
    for (int64_t index = begin; index < end; ++index) body(block, index);
  });
}

} // namespace puone::kernels::PUONE_ISA
