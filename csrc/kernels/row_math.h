// SPDX-License-Identifier: BSD-3-Clause
// Compute types and functions of kernels over rows.
#pragma once

#include <type_traits>

#include "kernels/isa.h"
#include "kernels/launch.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {

/// double for double, float for all other floating types.
template <class Element>
using RowType = std::conditional_t<std::is_same_v<Element, double>, double, float>;

/// The elements at a device address, which may be null.
template <class T>
T* elementsAt(Launch& launch, void* address) {
  return address ? reinterpret_cast<T*>(launch.resolve(address)) : nullptr;
}

} // namespace puone::kernels::PUONE_ISA

#ifdef PUONE_SIMT
#include "kernels/simt/row_math.h"
#else
#include "kernels/host/row_math.h"
#endif
