// SPDX-License-Identifier: BSD-3-Clause
// Elements on a host with compute type T: loops know their type E in memory.
#pragma once

#include <cstdint>

#include "kernels/isa.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {

template <class E, class T>
struct Stored {
  using Value = T;

  T load(const unsigned char* data, int64_t index) const {
    return cast<T>(kernels::PUONE_ISA::load<E>(data + index * static_cast<int64_t>(sizeof(E))));
  }

  void store(unsigned char* data, int64_t index, T value) const {
    kernels::PUONE_ISA::store(data + index * static_cast<int64_t>(sizeof(E)), cast<E>(value));
  }
};

/// Elements of type E with compute type T.
template <class E, class T>
Stored<E, T> stored(int32_t /*dtype*/) {
  return {};
}

} // namespace puone::kernels::PUONE_ISA
