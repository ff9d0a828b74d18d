// SPDX-License-Identifier: BSD-3-Clause
// The planes idiom on a host: one loop per row.
#pragma once

#include <cstdint>

#include "kernels/host/blocks.h"
#include "kernels/planes.h"

namespace puone::kernels::PUONE_ISA {

template <class Body>
void forPlanes(
    Launch& launch, int64_t planes, const Extent& extent, int64_t work, const Body& body) {
  blocks(
      launch, planes * extent.z * extent.y, extent.x * work, [=](const Block& block, int64_t row) {
        block.each(extent.x, body(Row::at(row, extent)));
      });
}

} // namespace puone::kernels::PUONE_ISA
