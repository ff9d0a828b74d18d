// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cast.h"

#include <array>
#include <stdexcept>
#include <utility>

namespace puone::kernels::PUONE_ISA {
namespace {

template <class Out, class In>
void castRow(
    unsigned char* __restrict out,
    int64_t out_stride,
    const unsigned char* __restrict in,
    int64_t in_stride,
    int64_t n) {
  if (out_stride == sizeof(Out) && in_stride == sizeof(In)) {
    for (int64_t i = 0; i < n; ++i) {
      store(out + i * sizeof(Out), cast<Out>(load<In>(in + i * sizeof(In))));
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      store(out + i * out_stride, cast<Out>(load<In>(in + i * in_stride)));
    }
  }
}

template <size_t... kPairs>
constexpr std::array<RowFunction, sizeof...(kPairs)> castTable(std::index_sequence<kPairs...>) {
  return {castRow<
      std::tuple_element_t<kPairs / kTypes, Types>,
      std::tuple_element_t<kPairs % kTypes, Types>>...};
}

/// By output type, then input type.
constexpr auto kCastRows = castTable(std::make_index_sequence<kTypes * kTypes>());

template <size_t kIndex>
constexpr int32_t kSize = sizeof(std::tuple_element_t<kIndex, Types>);

template <size_t... kIndex>
constexpr std::array<int32_t, kTypes> sizeTable(std::index_sequence<kIndex...>) {
  return {kSize<kIndex>...};
}

constexpr auto kSizes = sizeTable(std::make_index_sequence<kTypes>());

size_t checked(int32_t dtype) {
  if (dtype < 0 || dtype >= static_cast<int32_t>(kTypes)) {
    throw std::invalid_argument("not a puone_dtype");
  }
  return static_cast<size_t>(dtype);
}

} // namespace

RowFunction castRowOf(int32_t out_dtype, int32_t in_dtype) {
  return kCastRows[checked(out_dtype) * kTypes + checked(in_dtype)];
}

int32_t elementSize(int32_t dtype) {
  return kSizes[checked(dtype)];
}

} // namespace puone::kernels::PUONE_ISA
