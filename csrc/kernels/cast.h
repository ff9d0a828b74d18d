// SPDX-License-Identifier: BSD-3-Clause
// Casts of rows of elements between types that are known only at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>

#include "kernels/args.h"
#include "kernels/isa.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {

/// Element types in the order of puone_dtype.
using Types = std::tuple<
    Bool,
    uint8_t,
    int8_t,
    int16_t,
    int32_t,
    int64_t,
    uint16_t,
    uint32_t,
    uint64_t,
    Half,
    BFloat16,
    float,
    double,
    Complex<Half>,
    Complex<float>,
    Complex<double>>;
constexpr size_t kTypes = std::tuple_size_v<Types>;
static_assert(kTypes == PUONE_COMPLEX128 + 1);

namespace detail {
template <class T, size_t kIndex = 0>
constexpr int32_t typeIndex() {
  if constexpr (std::is_same_v<T, std::tuple_element_t<kIndex, Types>>) {
    return kIndex;
  } else {
    return typeIndex<T, kIndex + 1>();
  }
}
} // namespace detail

/// The puone_dtype of an element type.
template <class T>
inline constexpr int32_t kDtype = detail::typeIndex<T>();

/// One row: `n` elements, strides in bytes.
using RowFunction = void (*)(
    unsigned char* out, int64_t out_stride, const unsigned char* in, int64_t in_stride, int64_t n);

/// out[i] = cast<out_dtype>(in[i]). Throws std::invalid_argument for an invalid puone_dtype.
RowFunction castRowOf(int32_t out_dtype, int32_t in_dtype);
int32_t elementSize(int32_t dtype);

} // namespace puone::kernels::PUONE_ISA
