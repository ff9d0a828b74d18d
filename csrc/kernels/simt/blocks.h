// SPDX-License-Identifier: BSD-3-Clause
// The block idiom on a device. Equal inputs give equal bits: the order of combination depends only
// on n and on the number of threads, which depends only on `work`.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/launch.h"
#include "kernels/simt/map.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {

constexpr uint32_t kWarpThreads = 32;
constexpr uint32_t kAllLanes = 0xffffffff;
constexpr uint32_t kMaxBlockThreads = 512;

/// Applies `shuffle` to a value of any trivially copyable type, 4 bytes at a time.
template <class T, class Shuffle>
PUONE_DEVICE T inWords(const T& value, const Shuffle& shuffle) {
  constexpr int kWords = (sizeof(T) + 3) / 4;
  uint32_t words[kWords] = {};
  std::memcpy(words, &value, sizeof(T));
  for (int w = 0; w < kWords; ++w) words[w] = shuffle(words[w]);
  T result;
  std::memcpy(&result, words, sizeof(T));
  return result;
}

template <class T>
PUONE_DEVICE T shuffleXor(const T& value, int bits) {
  return inWords(value, [=](uint32_t word) { return __shfl_xor_sync(kAllLanes, word, bits); });
}

template <class T>
PUONE_DEVICE T shuffleUp(const T& value, uint32_t by) {
  return inWords(value, [=](uint32_t word) { return __shfl_up_sync(kAllLanes, word, by); });
}

class Block {
 public:
  template <class F>
  PUONE_DEVICE void each(int64_t n, const F& f) const {
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) f(i);
    __syncthreads();
  }

  template <class T, class Load, class Combine>
  PUONE_DEVICE T reduce(int64_t n, T identity, const Load& load, const Combine& combine) const {
    T mine = identity;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) mine = combine(mine, load(i));
    return all(mine, combine);
  }

  /// Combines the values of all threads.
  template <class T, class Combine>
  PUONE_DEVICE T all(T mine, const Combine& combine) const {
    for (int bits = kWarpThreads / 2; bits > 0; bits /= 2) {
      mine = combine(mine, shuffleXor(mine, bits));
    }
    if (blockDim.x == kWarpThreads) return mine;
    Shared<T>& warps = shared<T>();
    if (threadIdx.x % kWarpThreads == 0) warps.put(threadIdx.x / kWarpThreads, mine);
    __syncthreads();
    mine = warps.get(0);
    for (uint32_t w = 1; w < blockDim.x / kWarpThreads; ++w) mine = combine(mine, warps.get(w));
    __syncthreads();
    return mine;
  }

  template <class T, class Load, class Combine, class Store>
  PUONE_DEVICE void scan(
      int64_t n, T identity, const Load& load, const Combine& combine, const Store& store) const {
    T before = identity; // of all elements before this step
    for (int64_t first = 0; first < n; first += blockDim.x) {
      const int64_t i = first + threadIdx.x;
      T sum = i < n ? load(i) : identity;
      for (uint32_t by = 1; by < kWarpThreads; by *= 2) {
        const T other = shuffleUp(sum, by);
        if (threadIdx.x % kWarpThreads >= by) sum = combine(other, sum);
      }
      Shared<T>& warps = shared<T>();
      const uint32_t warp = threadIdx.x / kWarpThreads;
      if (threadIdx.x % kWarpThreads == kWarpThreads - 1) warps.put(warp, sum);
      __syncthreads();
      T start = before;
      for (uint32_t w = 0; w < warp; ++w) start = combine(start, warps.get(w));
      if (i < n) store(i, combine(start, sum));
      for (uint32_t w = 0; w < blockDim.x / kWarpThreads; ++w) {
        before = combine(before, warps.get(w));
      }
      __syncthreads();
    }
  }

  /// A bitonic sort whose comparisons all have the same direction: n need not be a power of two.
  template <class Item, class Before>
  PUONE_DEVICE void sort(Item* items, int64_t n, int64_t /*wanted*/, const Before& before) const {
    for (int64_t length = 2; length / 2 < n; length *= 2) {
      exchange(items, n, before, length / 2, [=](int64_t i) {
        return i / length * length + length - 1 - i % length;
      });
      for (int64_t by = length / 4; by > 0; by /= 2) {
        exchange(items, n, before, by, [=](int64_t i) { return i + by; });
      }
    }
  }

  template <class Item, class Before>
  PUONE_DEVICE void select(Item* items, int64_t n, int64_t /*rank*/, const Before& before) const {
    sort(items, n, n, before);
  }

  template <class F>
  PUONE_DEVICE void once(const F& f) const {
    if (threadIdx.x == 0) f();
    __syncthreads();
  }

 private:
  /// A value per warp.
  template <class T>
  struct Shared {
    alignas(16) unsigned char bytes[kMaxBlockThreads / kWarpThreads][sizeof(T)];
    PUONE_DEVICE void put(uint32_t warp, const T& value) {
      std::memcpy(bytes[warp], &value, sizeof(T));
    }
    PUONE_DEVICE T get(uint32_t warp) const {
      T value;
      std::memcpy(&value, bytes[warp], sizeof(T));
      return value;
    }
  };

  template <class T>
  PUONE_DEVICE static Shared<T>& shared() {
    PUONE_SHARED Shared<T> warps;
    return warps;
  }

  /// Puts each item whose bit `half` is clear and its partner in order.
  template <class Item, class Before, class Partner>
  PUONE_DEVICE void exchange(
      Item* items, int64_t n, const Before& before, int64_t half, const Partner& partner) const {
    each((n + 2 * half - 1) / (2 * half) * half, [=](int64_t pair) {
      const int64_t i = pair / half * 2 * half + pair % half;
      const int64_t j = partner(i);
      if (j >= n || !before(items[j], items[i])) return;
      const Item item = items[i];
      items[i] = items[j];
      items[j] = item;
    });
  }
};

namespace detail {

template <class Body>
PUONE_GLOBAL(kMaxBlockThreads, 1)
void blocksKernel(int64_t count, Body body) {
  const Block block;
  for (int64_t index = blockIdx.x; index < count; index += gridDim.x) body(block, index);
}

} // namespace detail

/// Threads for blocks that touch `work` elements each.
inline uint32_t blockThreads(int64_t work) {
  uint32_t threads = kWarpThreads;
  while (threads < kMaxBlockThreads && static_cast<int64_t>(threads) * 4 < work) threads *= 2;
  return threads;
}

template <class Body>
void blocks(Launch& launch, int64_t count, int64_t work, const Body& body) {
  if (count <= 0) return;
  dialect::start<dialect::Threads::kCooperating>(
      launch.stream(),
      detail::blocksKernel<Body>,
      static_cast<uint32_t>(count < kMaxBlocks ? count : kMaxBlocks),
      blockThreads(work),
      count,
      body);
}

} // namespace puone::kernels::PUONE_ISA
