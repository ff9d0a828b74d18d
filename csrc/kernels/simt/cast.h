// SPDX-License-Identifier: BSD-3-Clause
// Casts of single elements from and to types that are known only at run time. Not inlined: kernels
// have a fast path for the frequent types and use these functions for all others.
#pragma once

#include <cstdint>

#include "kernels/cast.h"
#include "kernels/target.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {

#define PUONE_FOR_TYPES(X)           \
  X(PUONE_BOOL, Bool)                \
  X(PUONE_UINT8, uint8_t)            \
  X(PUONE_INT8, int8_t)              \
  X(PUONE_INT16, int16_t)            \
  X(PUONE_INT32, int32_t)            \
  X(PUONE_INT64, int64_t)            \
  X(PUONE_UINT16, uint16_t)          \
  X(PUONE_UINT32, uint32_t)          \
  X(PUONE_UINT64, uint64_t)          \
  X(PUONE_FLOAT16, Half)             \
  X(PUONE_BFLOAT16, BFloat16)        \
  X(PUONE_FLOAT32, float)            \
  X(PUONE_FLOAT64, double)           \
  X(PUONE_COMPLEX32, Complex<Half>)  \
  X(PUONE_COMPLEX64, Complex<float>) \
  X(PUONE_COMPLEX128, Complex<double>)

namespace detail {

template <class T>
PUONE_DEVICE PUONE_NOINLINE T loadAny(const unsigned char* at, int32_t dtype) {
  switch (dtype) {
#define PUONE_CASE(name, Type) \
  case name:                   \
    return cast<T>(load<Type>(at));
    PUONE_FOR_TYPES(PUONE_CASE)
#undef PUONE_CASE
  }
  return T{};
}

template <class T>
PUONE_DEVICE PUONE_NOINLINE void storeAny(unsigned char* at, int32_t dtype, T value) {
  switch (dtype) {
#define PUONE_CASE(name, Type) \
  case name:                   \
    return store(at, cast<Type>(value));
    PUONE_FOR_TYPES(PUONE_CASE)
#undef PUONE_CASE
  }
}

} // namespace detail

/// The element of type `dtype` at `at`, as a T.
template <class T>
PUONE_DEVICE T loadAs(const unsigned char* at, int32_t dtype) {
  return dtype == kDtype<T> ? load<T>(at) : detail::loadAny<T>(at, dtype);
}

/// Stores `value` as an element of type `dtype`.
template <class T>
PUONE_DEVICE void storeAs(unsigned char* at, int32_t dtype, T value) {
  if (dtype == kDtype<T>) return store(at, value);
  detail::storeAny(at, dtype, value);
}

/// The value after a cast to the narrower type `via` and back: 300 becomes 44 through uint8.
template <class T>
PUONE_DEVICE T narrowed(T value, int32_t via) {
  if constexpr (std::is_integral_v<T>) {
    switch (via) {
      case PUONE_UINT8:
        return static_cast<uint8_t>(value);
      case PUONE_INT8:
        return static_cast<int8_t>(value);
      case PUONE_INT16:
        return static_cast<int16_t>(value);
      case PUONE_UINT16:
        return static_cast<uint16_t>(value);
      case PUONE_INT32:
        return static_cast<T>(static_cast<int32_t>(value));
      case PUONE_UINT32:
        return static_cast<T>(static_cast<uint32_t>(value));
      case PUONE_BOOL:
        return value != 0;
    }
  } else if constexpr (std::is_floating_point_v<T>) {
    switch (via) {
      case PUONE_FLOAT16:
        return toFloat(fromFloat<Half>(static_cast<float>(value)));
      case PUONE_BFLOAT16:
        return toFloat(fromFloat<BFloat16>(static_cast<float>(value)));
      case PUONE_FLOAT32:
        return static_cast<float>(value);
    }
  } else if constexpr (kIsComplex<T>) {
    switch (via) {
      case PUONE_COMPLEX32:
        return {narrowed(value.real, PUONE_FLOAT16), narrowed(value.imaginary, PUONE_FLOAT16)};
      case PUONE_COMPLEX64:
        return {narrowed(value.real, PUONE_FLOAT32), narrowed(value.imaginary, PUONE_FLOAT32)};
    }
  }
  return value;
}

} // namespace puone::kernels::PUONE_ISA
