// SPDX-License-Identifier: BSD-3-Clause
// What the blocks of a running launch tell each other.
//
// A block may wait only for one that certainly runs: the device starts the blocks of a launch in an
// order of its own, as many at a time as there is room for. So the blocks draw numbers, and a block
// waits only for lower numbers than its own. Their blocks have all begun, and the lowest of those
// that have not ended waits for nobody.
//
// These values are loaded and stored by volatile accesses, which reach the memory that all
// multiprocessors share, in one piece up to 8 bytes. A value of more pieces, or one beside its
// mark, is ordered by fences: the writer's between the value and the mark, the reader's between the
// mark and the value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/elementwise.h"
#include "kernels/isa.h"
#include "kernels/launch.h"
#include "kernels/simt/map.h"
#include "kernels/simt/shared.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {

namespace detail {

template <class Word>
struct ClearWord {
  PUONE_DEVICE void operator()(int64_t i) const {
    words[i] = 0;
  }
  Word* words;
};

} // namespace detail

/// Temporary memory of n words, which are 0 before what the launch starts next. Each source has
/// words of a type of its own, so that no kernel is compiled twice.
template <class Word>
Word* clearWords(Launch& launch, int64_t n) {
  auto* const words = static_cast<Word*>(launch.scratch(static_cast<size_t>(n) * sizeof(Word)));
  map(launch, n, detail::ClearWord<Word>{words});
  return words;
}

/// Draws a block's number: 0, 1, ... in the order in which blocks ask. All threads of a block call
/// it, once. The counter begins at 0.
PUONE_DEVICE inline uint32_t drawNumber(uint32_t* counter) {
  PUONE_SHARED SharedArray<uint32_t, 1> memory;
  uint32_t* const number = memory.data();
  if (threadIdx.x == 0) *number = atomicAdd(counter, 1u);
  __syncthreads();
  return *number;
}

template <class T>
PUONE_DEVICE void tell(T* at, const T& value) {
  using Word = std::conditional_t<sizeof(T) % sizeof(uint64_t) == 0, uint64_t, uint32_t>;
  constexpr size_t kWords = sizeof(T) / sizeof(Word);
  static_assert(sizeof(T) % sizeof(Word) == 0);
  Word words[kWords];
  std::memcpy(words, &value, sizeof words);
  volatile Word* const to = reinterpret_cast<Word*>(at);
  for (size_t w = 0; w < kWords; ++w) to[w] = words[w];
}
/// Without what is between its parts.
template <class A, class B>
PUONE_DEVICE void tell(Pair<A, B>* at, const Pair<A, B>& value) {
  tell(&at->first, value.first);
  tell(&at->second, value.second);
}

template <class T>
PUONE_DEVICE void hear(const T* at, T& value) {
  using Word = std::conditional_t<sizeof(T) % sizeof(uint64_t) == 0, uint64_t, uint32_t>;
  constexpr size_t kWords = sizeof(T) / sizeof(Word);
  const volatile Word* const from = reinterpret_cast<const Word*>(at);
  Word words[kWords];
  for (size_t w = 0; w < kWords; ++w) words[w] = from[w];
  std::memcpy(&value, words, sizeof words);
}
template <class A, class B>
PUONE_DEVICE void hear(const Pair<A, B>* at, Pair<A, B>& value) {
  hear(&at->first, value.first);
  hear(&at->second, value.second);
}

/// Values that blocks hand on to blocks of higher numbers.
template <class T>
class Told {
 public:
  /// `marks` are 0 at first.
  Told(T* values, uint32_t* marks) : values_(values), marks_(marks) {}

  PUONE_DEVICE void put(int64_t i, const T& value) const {
    tell(values_ + i, value);
    __threadfence();
    tell(marks_ + i, 1u);
  }

  /// Waits for the value.
  PUONE_DEVICE T wait(int64_t i) const {
    for (uint32_t mark = 0; mark == 0;) hear(marks_ + i, mark);
    __threadfence();
    T value;
    hear(values_ + i, value);
    return value;
  }

 private:
  T* values_;
  uint32_t* marks_;
};

} // namespace puone::kernels::PUONE_ISA
