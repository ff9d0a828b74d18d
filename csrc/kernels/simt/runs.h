// SPDX-License-Identifier: BSD-3-Clause
// Elements read and written as the compute type, several at a time. Casts of frequent types are
// inlined; simt/cast.h has the others.
#pragma once

#include <cstdint>

#include "kernels/cast.h"
#include "kernels/elementwise.h"
#include "kernels/simt/cast.h"
#include "kernels/simt/shared.h"
#include "kernels/simt/vector.h"
#include "kernels/target.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {

/// The types that are cast inline to and from T, and the number of contiguous elements that a
/// thread reads at a time.
template <class T>
struct InMemory {
  using Types = ComputeTypes<T>;
  static constexpr int kRun = 16 / sizeof(T);
};
template <>
struct InMemory<float> {
  using Types = ComputeTypes<float, Half, BFloat16>;
  static constexpr int kRun = 8;
};
template <>
struct InMemory<int32_t> {
  using Types = ComputeTypes<int32_t, int16_t, int8_t, uint8_t>;
  static constexpr int kRun = 8;
};
template <>
struct InMemory<int64_t> {
  using Types = ComputeTypes<int64_t, int32_t, int16_t, int8_t, uint8_t, Bool>;
  static constexpr int kRun = 4;
};
template <>
struct InMemory<Bool> {
  using Types = ComputeTypes<Bool, uint8_t, int32_t, int64_t, Half, BFloat16, float>;
  static constexpr int kRun = 8;
};

namespace detail {

template <class F, class... S>
PUONE_FN bool withTypeInMemory(int32_t dtype, const F& f, ComputeTypes<S...> /*types*/) {
  return ((dtype == kDtype<S> && (f(S{}), true)) || ...);
}

} // namespace detail

/// Calls f(S{}) with the type S of `dtype`, if it is in InMemory<T>; else returns false.
template <class T, class F>
PUONE_FN bool withTypeInMemory(int32_t dtype, const F& f) {
  return detail::withTypeInMemory(dtype, f, typename InMemory<T>::Types{});
}

template <class T>
bool isInMemory(int32_t dtype) {
  return withTypeInMemory<T>(dtype, []<class S>(S) {});
}

/// Reads kRuns runs of kRun elements each, run r from at[r] on. Runs of several elements are
/// aligned to 16 bytes, or to their size if that is less. Returns false if the type is not in
/// InMemory<T>.
template <class T, int kRuns, int kRun>
PUONE_DEVICE bool readRuns(
    T (&x)[kRuns][kRun], const unsigned char* const (&at)[kRuns], int32_t dtype) {
  return withTypeInMemory<T>(dtype, [&]<class S>(S) {
    constexpr int kWhole = static_cast<int>(16 / sizeof(S));
    constexpr int kElements = kRun < kWhole ? kRun : kWhole;
    using Part = detail::AlignedVector<S, kElements>;
    Part parts[kRuns][kRun / kElements];
    PUONE_UNROLL
    for (int r = 0; r < kRuns; ++r) {
      PUONE_UNROLL
      for (int p = 0; p < kRun / kElements; ++p) {
        parts[r][p] = detail::loadVector<Part>(at[r] + p * sizeof(Part));
      }
    }
    PUONE_UNROLL
    for (int r = 0; r < kRuns; ++r) {
      PUONE_UNROLL
      for (int e = 0; e < kRun; ++e) {
        x[r][e] = cast<T>(parts[r][e / kElements].elements[e % kElements]);
      }
    }
  });
}

/// The same for single elements of any type.
template <class T, int kElements>
PUONE_DEVICE void readElements(
    T (&x)[kElements][1], const unsigned char* const (&at)[kElements], int32_t dtype) {
  if (readRuns(x, at, dtype)) return;
  PUONE_UNROLL
  for (int e = 0; e < kElements; ++e) x[e][0] = detail::loadAny<T>(at[e], dtype);
}

/// Stores `value` as an element of type `dtype`.
template <class T>
PUONE_DEVICE void writeAs(unsigned char* at, int32_t dtype, T value) {
  if (withTypeInMemory<T>(dtype, [&]<class S>(S) { store(at, cast<S>(value)); })) return;
  detail::storeAny(at, dtype, value);
}

} // namespace puone::kernels::PUONE_ISA
