// SPDX-License-Identifier: BSD-3-Clause
// The element types of args.h and the casts between them, as torch.Tensor.to does them on the CPU.
// Written as branch-free bit code where the language has no type, so that loops over them
// vectorise.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/isa.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {

struct Bool {
  uint8_t bits;
};

struct Half {
  uint16_t bits;
};

struct BFloat16 {
  uint16_t bits;
};

template <class T>
struct Complex {
  T real;
  T imaginary;
};

template <class T>
inline constexpr bool kIsComplex = false;
template <class T>
inline constexpr bool kIsComplex<Complex<T>> = true;

/// Types without arithmetic in C++: they are computed as float.
template <class T>
inline constexpr bool kIsStorageFloat = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

PUONE_FN float toFloat(BFloat16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}

PUONE_FN float toFloat(Half value) {
#ifdef PUONE_ON_DEVICE
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
  return result;
#else
  // Shift exponent and mantissa into place; the multiplication by 2^112 rebiases the exponent and
  // turns half's subnormals into normal floats. Infinity and NaN get float's full exponent.
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(value.bits & 0x7fff) << 13;
  const float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
  const uint32_t special = (value.bits & 0x7c00) == 0x7c00 ? 0x7f800000u : 0u;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(scaled) | special | sign);
#endif
}

template <class T>
PUONE_FN T fromFloat(float value);

template <>
PUONE_FN BFloat16 fromFloat<BFloat16>(float value) {
#ifdef PUONE_ON_DEVICE
  BFloat16 result;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
  return result;
#else
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16; // to nearest, ties to even
  return {static_cast<uint16_t>(value != value ? 0x7fc0 : rounded)};
#endif
}

template <>
PUONE_FN Half fromFloat<Half>(float value) {
#ifdef PUONE_ON_DEVICE
  Half result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
  return result;
#else
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  // Subnormal results: adding 0.5 aligns the mantissa so that the addition itself rounds.
  const uint32_t small =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000;
  // Normal results: rebias the exponent and round to nearest, ties to even; may carry to infinity.
  const uint32_t normal = (magnitude + 0xc8000fff + (magnitude >> 13 & 1)) >> 13;
  const uint32_t big = magnitude > 0x7f800000 ? 0x7e00 : 0x7c00;
  const uint32_t result = magnitude >= 0x47800000 ? big : magnitude < 0x38800000 ? small : normal;
  return {static_cast<uint16_t>(result | sign)};
#endif
}

#ifdef PUONE_ON_DEVICE
/// The longest words in which so many bytes are accessed. nvcc splits structs into their members,
/// or into bytes, and each of them then costs an access; it leaves words whole.
template <size_t kBytes>
using WordOf = std::conditional_t<
    kBytes % sizeof(uint4) == 0,
    uint4,
    std::conditional_t<
        kBytes == 8,
        uint2,
        std::conditional_t<
            kBytes == 4,
            uint32_t,
            std::conditional_t<kBytes == 2, uint16_t, uint8_t>>>>;
#endif

// Elements in a device's memory are aligned to their size. The compiler must know that: devices
// cannot access unaligned memory.
template <class T>
PUONE_FN T load(const void* address) {
  T value;
#ifdef PUONE_ON_DEVICE
  const auto word = *static_cast<const WordOf<sizeof(T)>*>(address);
  static_assert(sizeof word == sizeof value);
  std::memcpy(&value, &word, sizeof value);
#else
  std::memcpy(&value, address, sizeof value);
#endif
  return value;
}

template <class T>
PUONE_FN void store(void* address, T value) {
#ifdef PUONE_ON_DEVICE
  WordOf<sizeof(T)> word;
  static_assert(sizeof word == sizeof value);
  std::memcpy(&word, &value, sizeof value);
  *static_cast<WordOf<sizeof(T)>*>(address) = word;
#else
  std::memcpy(address, &value, sizeof value);
#endif
}

/// Whether the value is true; NaN is.
template <class T>
PUONE_FN bool isNonzero(T value) {
  if constexpr (kIsComplex<T>) {
    return isNonzero(value.real) || isNonzero(value.imaginary);
  } else if constexpr (std::is_same_v<T, Bool>) {
    return value.bits != 0;
  } else if constexpr (kIsStorageFloat<T>) {
    return (value.bits & 0x7fff) != 0;
  } else {
    return value != T(0);
  }
}

template <class Out, class In>
PUONE_FN Out cast(In value) {
  if constexpr (std::is_same_v<Out, In>) {
    return value;
  } else if constexpr (std::is_same_v<Out, Bool>) {
    return {static_cast<uint8_t>(isNonzero(value))};
  } else if constexpr (kIsComplex<Out>) {
    using Part = decltype(Out::real);
    if constexpr (kIsComplex<In>) {
      return {cast<Part>(value.real), cast<Part>(value.imaginary)};
    } else {
      return {cast<Part>(value), cast<Part>(uint8_t{0})};
    }
  } else if constexpr (kIsComplex<In>) {
    return cast<Out>(value.real);
  } else if constexpr (std::is_same_v<In, Bool>) {
    return cast<Out>(static_cast<uint8_t>(value.bits != 0));
  } else if constexpr (kIsStorageFloat<In>) {
    return cast<Out>(toFloat(value));
  } else if constexpr (kIsStorageFloat<Out>) {
    return fromFloat<Out>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<Out, uint8_t> && std::is_floating_point_v<In>) {
    return static_cast<uint8_t>(static_cast<int64_t>(value)); // defined for -1.0, as torch has it
  } else {
    return static_cast<Out>(value);
  }
}

template <class T>
PUONE_FN T negated(T value) {
  if constexpr (kIsComplex<T>) {
    return {negated(value.real), negated(value.imaginary)};
  } else if constexpr (kIsStorageFloat<T>) {
    return {static_cast<uint16_t>(value.bits ^ 0x8000)};
  } else if constexpr (std::is_same_v<T, Bool>) {
    return value; // torch does not allow the negation of bool
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(0u - static_cast<std::make_unsigned_t<T>>(value));
  } else {
    return -value;
  }
}

template <class T>
PUONE_FN T conjugated(T value) {
  if constexpr (kIsComplex<T>) {
    return {value.real, negated(value.imaginary)};
  } else {
    return value;
  }
}

/// A type as a function argument.
template <class T>
struct Type {};

} // namespace puone::kernels::PUONE_ISA
