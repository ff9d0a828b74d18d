// SPDX-License-Identifier: BSD-3-Clause
// Elements in global memory that any number of threads add to, in any order.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "kernels/cast.h"
#include "kernels/isa.h"
#include "kernels/target.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {

/// Devices exchange 2, 4 or 8 bytes at a time.
template <class T>
constexpr bool kAddsAtomically = sizeof(T) > 1;

/// Whether the sum is the same in every order.
template <class T>
constexpr bool kSumsExactly = std::is_integral_v<T>;

/// Adds to the element at `at`, which is aligned to its size. Sums are rounded each time; those of
/// float32 may count subnormal numbers as zeros, as devices do.
template <class T>
PUONE_DEVICE void addAtomically(unsigned char* at, T value) {
  static_assert(kAddsAtomically<T>);
  if constexpr (kIsComplex<T>) {
    addAtomically(at, value.real);
    addAtomically(at + sizeof value.real, value.imaginary);
  } else if constexpr (std::is_floating_point_v<T>) {
    atomicAdd(reinterpret_cast<T*>(at), value);
  } else if constexpr (sizeof(T) > 2) {
    // Names of types for which devices have the function.
    using Word = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>;
    atomicAdd(reinterpret_cast<Word*>(at), static_cast<Word>(value));
  } else {
    using C = std::conditional_t<kIsStorageFloat<T>, float, int32_t>;
    auto* const word = reinterpret_cast<unsigned short*>(at);
    unsigned short seen, found = *static_cast<volatile unsigned short*>(word);
    do {
      seen = found;
      const T sum = cast<T>(cast<C>(std::bit_cast<T>(seen)) + cast<C>(value));
      found = atomicCAS(word, seen, std::bit_cast<unsigned short>(sum));
    } while (found != seen);
  }
}

} // namespace puone::kernels::PUONE_ISA
