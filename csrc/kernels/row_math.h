// SPDX-License-Identifier: BSD-3-Clause
// What kernels over rows compute in and with.
#pragma once

#include <type_traits>

#include "kernels/isa.h"
#include "kernels/launch.h"
#include "kernels/portable_math.h"
#include "kernels/target.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {

/// double for double, float for all other floating types.
template <class Element>
using RowType = std::conditional_t<std::is_same_v<Element, double>, double, float>;

/// exp(x) that vectorises, NaN for NaN.
template <class T>
PUONE_FN T exponentialOrNan(T x) {
  // A selection of results would become a jump around the computation.
  const T number = x == x ? x : T(0), factor = x == x ? T(1) : x;
  return exponential(number) * factor;
}

/// The elements behind a device address that may be null.
template <class T>
T* elementsAt(Launch& launch, void* address) {
  return address ? reinterpret_cast<T*>(launch.resolve(address)) : nullptr;
}

} // namespace puone::kernels::PUONE_ISA
