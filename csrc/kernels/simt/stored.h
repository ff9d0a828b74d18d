// SPDX-License-Identifier: BSD-3-Clause
// Elements on a device whose compute type is T. Types with the same compute type share one kernel,
// which chooses the type in memory at run time, the same for all threads.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/args.h"
#include "kernels/cast.h"
#include "kernels/target.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {

/// visit(f) calls f(Type<E>()) with the elements' type E in memory.
template <class T>
struct StoredAs {
  int32_t dtype;

  template <class F>
  PUONE_DEVICE void visit(const F& f) const {
    if constexpr (std::is_same_v<T, float>) {
      if (dtype == PUONE_FLOAT32) return f(Type<float>());
      if (dtype == PUONE_FLOAT16) return f(Type<Half>());
      f(Type<BFloat16>());
    } else if constexpr (std::is_same_v<T, uint32_t>) {
      if (dtype == PUONE_INT32) return f(Type<int32_t>());
      if (dtype == PUONE_INT16) return f(Type<int16_t>());
      if (dtype == PUONE_INT8) return f(Type<int8_t>());
      f(Type<uint8_t>());
    } else {
      f(Type<T>());
    }
  }
};

/// The same of elements of type E, which is the kernel's.
template <class E>
struct StoredOnlyAs {
  template <class F>
  PUONE_DEVICE void visit(const F& f) const {
    f(Type<E>());
  }
};

template <class T, class As = StoredAs<T>>
struct Stored : As {
  using Value = T;

  PUONE_DEVICE T load(const unsigned char* data, int64_t index) const {
    T value;
    this->visit([&]<class E>(Type<E>) {
      value = cast<T>(kernels::PUONE_ISA::load<E>(data + index * static_cast<int64_t>(sizeof(E))));
    });
    return value;
  }

  PUONE_DEVICE void store(unsigned char* data, int64_t index, T value) const {
    this->visit([&]<class E>(Type<E>) {
      kernels::PUONE_ISA::store(data + index * static_cast<int64_t>(sizeof(E)), cast<E>(value));
    });
  }
};

/// Elements of type E with compute type T.
template <class E, class T>
Stored<T> stored(int32_t dtype) {
  return {dtype};
}

} // namespace puone::kernels::PUONE_ISA
