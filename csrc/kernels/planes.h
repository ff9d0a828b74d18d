// SPDX-License-Identifier: BSD-3-Clause
// The planes idiom: one call of a function per element of contiguous [plane][z][y][x].
//
//   forPlanes(launch, planes, extent, work, Body{...})
//
// body(row) returns a function that is called with the x of each element of a row along x. Values
// that depend only on the row are thus computed once where a loop runs along it. Both functions are
// trivially copyable. `work`: cost of an element, as a number of accessed elements. Calls must be
// independent.
#pragma once

#include <cstdint>

#include "kernels/isa.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {

/// Sizes of a plane.
struct Extent {
  int64_t z;
  int64_t y;
  int64_t x;

  PUONE_FN int64_t plane() const {
    return z * y * x;
  }
};

/// A row along x: its plane, and its position there.
struct Row {
  template <class Int>
  PUONE_FN static Row at(Int number, const Extent& extent) {
    const auto z = static_cast<Int>(extent.z), y = static_cast<Int>(extent.y);
    return {
        static_cast<int64_t>(number / y / z),
        static_cast<int64_t>(number / y % z),
        static_cast<int64_t>(number % y)};
  }

  int64_t plane;
  int64_t z;
  int64_t y;
};

} // namespace puone::kernels::PUONE_ISA

#ifdef PUONE_SIMT
#include "kernels/simt/planes.h"
#else
#include "kernels/host/planes.h"
#endif
