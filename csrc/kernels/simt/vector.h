// SPDX-License-Identifier: BSD-3-Clause
// Several neighbouring elements that a thread reads or writes at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA::detail {

template <class T, int kElements>
struct alignas(sizeof(T) * kElements) AlignedVector {
  T elements[kElements];
};

#ifdef PUONE_ON_DEVICE
/// The longest words that are accessed at once, for kBytes. nvcc splits other structs into their
/// members, and each member of a 16-bit type then costs an access.
template <size_t kBytes>
struct WordOf {
  using Type = uint4;
};
template <>
struct WordOf<8> {
  using Type = uint2;
};
template <>
struct WordOf<4> {
  using Type = uint32_t;
};
template <>
struct WordOf<2> {
  using Type = uint16_t;
};
template <>
struct WordOf<1> {
  using Type = uint8_t;
};
#endif

/// Reads a vector, which must be aligned to its size, or to 16 bytes if that is less.
template <class Vector>
PUONE_DEVICE Vector loadVector(const void* from) {
#ifdef PUONE_ON_DEVICE
  using Word = typename WordOf<sizeof(Vector)>::Type;
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
  using Word = typename WordOf<sizeof(Vector)>::Type;
  constexpr size_t kWords = sizeof(Vector) / sizeof(Word);
  Word words[kWords];
  std::memcpy(words, &vector, sizeof vector);
  PUONE_UNROLL
  for (size_t i = 0; i < kWords; ++i) __stwb(static_cast<Word*>(to) + i, words[i]);
#else
  *static_cast<Vector*>(to) = vector;
#endif
}

} // namespace puone::kernels::PUONE_ISA::detail
