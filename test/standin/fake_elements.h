// SPDX-License-Identifier: BSD-3-Clause
// Elements as the stand-ins for NVIDIA's libraries add them up: a Storage in memory, a Sum of them.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "kernels/types.h"

namespace fake {

/// A float of which products use the upper 19 bits.
struct Tf32 {
  float value;
};

/// What is added is not rounded to TF32.
template <class Sum, class Storage>
Sum addend(Storage stored) {
  if constexpr (std::is_same_v<Storage, Tf32>) {
    return stored.value;
  } else if constexpr (std::is_convertible_v<Storage, Sum>) {
    return stored;
  } else {
    return puone::kernels::PUONE_ISA::toFloat(stored);
  }
}

template <class Sum, class Storage>
Sum factor(Storage stored) {
  if constexpr (std::is_same_v<Storage, Tf32>) {
    return std::bit_cast<float>(std::bit_cast<uint32_t>(stored.value) & ~0x1fffu);
  } else {
    return addend<Sum>(stored);
  }
}

template <class Storage, class Sum>
Storage rounded(Sum sum) {
  if constexpr (std::is_same_v<Storage, Tf32>) {
    return {static_cast<float>(sum)};
  } else if constexpr (std::is_convertible_v<Sum, Storage>) {
    return static_cast<Storage>(sum);
  } else {
    return puone::kernels::PUONE_ISA::fromFloat<Storage>(static_cast<float>(sum));
  }
}

} // namespace fake
