// SPDX-License-Identifier: BSD-3-Clause
// The compute types of the linear algebra kernels for each element type; arithmetic.h computes in
// them.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <type_traits>

#include "kernels/args.h"
#include "kernels/arithmetic.h"
#include "kernels/isa.h"
#include "kernels/target.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {

template <class E>
struct ComputeOf {
  /// For integers: unsigned, because overflow of signed ones is undefined.
  using Real = std::conditional_t<sizeof(E) == 8, uint64_t, uint32_t>;
  using Value = Real;
};
template <>
struct ComputeOf<Half> {
  using Real = float;
  using Value = float;
};
template <>
struct ComputeOf<BFloat16> : ComputeOf<Half> {};
template <>
struct ComputeOf<float> : ComputeOf<Half> {};
template <>
struct ComputeOf<double> {
  using Real = double;
  using Value = double;
};
template <class T>
struct ComputeOf<Complex<T>> {
  using Real = T;
  using Value = Complex<T>;
};

/// The type of a sum of elements of type E before it is rounded to E; the type of its real part.
template <class E>
using ComputeValue = typename ComputeOf<E>::Value;
template <class E>
using ComputeReal = typename ComputeOf<E>::Real;

/// 0 where x <= 0, else x; NaN stays. Of a type that is not real it is x.
template <class T>
PUONE_FN T rectified(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    return x <= T(0) ? T(0) : x;
  } else {
    return x;
  }
}

/// Calls body(Type<E>()) for the element type of `dtype`, one of those of linear algebra.
template <class Body>
void forComputeType(int32_t dtype, const Body& body) {
  switch (dtype) {
    case PUONE_UINT8:
      return body(Type<uint8_t>());
    case PUONE_INT8:
      return body(Type<int8_t>());
    case PUONE_INT16:
      return body(Type<int16_t>());
    case PUONE_INT32:
      return body(Type<int32_t>());
    case PUONE_INT64:
      return body(Type<int64_t>());
    case PUONE_FLOAT16:
      return body(Type<Half>());
    case PUONE_BFLOAT16:
      return body(Type<BFloat16>());
    case PUONE_FLOAT32:
      return body(Type<float>());
    case PUONE_FLOAT64:
      return body(Type<double>());
    case PUONE_COMPLEX64:
      return body(Type<Complex<float>>());
    case PUONE_COMPLEX128:
      return body(Type<Complex<double>>());
  }
  throw std::invalid_argument("linear algebra is not defined for this dtype");
}

} // namespace puone::kernels::PUONE_ISA
