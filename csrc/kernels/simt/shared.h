// SPDX-License-Identifier: BSD-3-Clause
// Shared memory of a block.
#pragma once

#include <cstdint>

#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {

/// Shared memory of a block for n elements of any trivially copyable type.
template <class T, uint32_t n>
struct SharedArray {
  alignas(16) unsigned char bytes[n * sizeof(T)];
  PUONE_DEVICE T* data() {
    return reinterpret_cast<T*>(bytes);
  }
};

} // namespace puone::kernels::PUONE_ISA
