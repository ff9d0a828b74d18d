// SPDX-License-Identifier: BSD-3-Clause
// Elements that are only moved: only their size matters.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "kernels/isa.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {

struct Bits128 {
  uint64_t words[2];
};

/// Calls f(T{}) with a T of element_size bytes.
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

} // namespace puone::kernels::PUONE_ISA
