// SPDX-License-Identifier: BSD-3-Clause
// Resampling on a device: a thread per element.
#pragma once

#include <cstdint>

#include "kernels/launch.h"
#include "kernels/planes.h"

namespace puone::kernels::PUONE_ISA {
namespace resampling {

/// Computes the elements of every plane.
template <class Sums>
void sumRows(Launch& launch, int64_t planes, const Sums& sums) {
  constexpr int64_t kWork = 8;
  forPlanes(launch, planes, sums.extent, kWork, sums);
}

} // namespace resampling
} // namespace puone::kernels::PUONE_ISA
