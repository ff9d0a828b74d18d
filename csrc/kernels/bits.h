// SPDX-License-Identifier: BSD-3-Clause
// Elements that are moved and not looked at: what counts is their size.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "kernels/isa.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {

struct Bits128 {
  uint64_t words[2];
};

/// f(T{}) with a T of element_size bytes.
template <class F>
auto withBits(int32_t element_size, const F& f) {
  switch (element_size) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    case 8:
      return f(uint64_t{});
    case 16:
      return f(Bits128{});
  }
  throw std::invalid_argument("element_size is not 1, 2, 4, 8 or 16");
}

/// A row of elements of T's size; strides in bytes.
template <class T>
void copyRow(
    unsigned char* __restrict out,
    int64_t out_stride,
    const unsigned char* __restrict in,
    int64_t in_stride,
    int64_t n) {
  if (out_stride == sizeof(T) && in_stride == sizeof(T)) {
    std::memcpy(out, in, static_cast<size_t>(n) * sizeof(T));
  } else if (out_stride == sizeof(T)) {
    for (int64_t i = 0; i < n; ++i) store(out + i * sizeof(T), load<T>(in + i * in_stride));
  } else {
    for (int64_t i = 0; i < n; ++i) store(out + i * out_stride, load<T>(in + i * in_stride));
  }
}

} // namespace puone::kernels::PUONE_ISA
