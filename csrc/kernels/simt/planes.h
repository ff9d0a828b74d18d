// SPDX-License-Identifier: BSD-3-Clause
// The planes idiom on a device: a thread per element.
#pragma once

#include <cstdint>

#include "kernels/planes.h"
#include "kernels/simt/map.h"
#include "kernels/simt/strided.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {
namespace detail {

template <class Body>
struct PlaneElement {
  PUONE_DEVICE void operator()(int64_t i) const {
    const int64_t row =
        few ? static_cast<uint32_t>(i) / static_cast<uint32_t>(extent.x) : i / extent.x;
    const int64_t x = i - row * extent.x;
    // 32-bit divisions are much faster.
    body(few ? Row::at(static_cast<uint32_t>(row), extent) : Row::at(row, extent))(x);
  }
  Extent extent;
  bool few; // elements
  Body body;
};

} // namespace detail

template <class Body>
void forPlanes(
    Launch& launch, int64_t planes, const Extent& extent, int64_t /*work*/, const Body& body) {
  const int64_t elements = planes * extent.plane();
  map(launch, elements, detail::PlaneElement<Body>{extent, elements < kMaxElements, body});
}

} // namespace puone::kernels::PUONE_ISA
