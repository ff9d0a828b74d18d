// SPDX-License-Identifier: BSD-3-Clause
// Several neighbouring elements that a thread reads or writes at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/cast.h"
#include "kernels/target.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA::detail {

template <class T, int kElements>
struct alignas(sizeof(T) * kElements) AlignedVector {
  T elements[kElements];
};

/// Reads a vector, which must be aligned to its size, or to 16 bytes if that is less.
template <class Vector>
PUONE_DEVICE Vector loadVector(const void* from) {
#ifdef PUONE_ON_DEVICE
  using Word = WordOf<sizeof(Vector)>;
  constexpr size_t kWords = sizeof(Vector) / sizeof(Word);
  Word words[kWords];
  PUONE_UNROLL
  for (size_t i = 0; i < kWords; ++i) words[i] = static_cast<const Word*>(from)[i];
  Vector vector;
  std::memcpy(&vector, words, sizeof vector);
  return vector;
#else
  return *static_cast<const Vector*>(from);
#endif
}

/// Writes one, likewise. A plain assignment of a word may be split again; __stwb is not.
template <class Vector>
PUONE_DEVICE void storeVector(void* to, const Vector& vector) {
#ifdef PUONE_ON_DEVICE
  using Word = WordOf<sizeof(Vector)>;
  constexpr size_t kWords = sizeof(Vector) / sizeof(Word);
  Word words[kWords];
  std::memcpy(words, &vector, sizeof vector);
  PUONE_UNROLL
  for (size_t i = 0; i < kWords; ++i) __stwb(static_cast<Word*>(to) + i, words[i]);
#else
  *static_cast<Vector*>(to) = vector;
#endif
}

/// Reads kElements of type Stored as T; writeVector writes them.
template <class Stored, int kElements, class T>
PUONE_DEVICE void readVector(T* x, const void* from) {
  const auto vector = loadVector<AlignedVector<Stored, kElements>>(from);
  PUONE_UNROLL
  for (int e = 0; e < kElements; ++e) x[e] = cast<T>(vector.elements[e]);
}
template <class Stored, int kElements, class T>
PUONE_DEVICE void writeVector(const T* x, void* to) {
  AlignedVector<Stored, kElements> vector;
  PUONE_UNROLL
  for (int e = 0; e < kElements; ++e) vector.elements[e] = cast<Stored>(x[e]);
  storeVector(to, vector);
}

} // namespace puone::kernels::PUONE_ISA::detail
