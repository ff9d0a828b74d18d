// SPDX-License-Identifier: BSD-3-Clause
// The map idiom: one call of a function per index, in any order.
#pragma once

#include <cstdint>

#include "kernels/isa.h"
#include "kernels/launch.h"
#include "kernels/strided.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {

/// f(i) for every i in [0, n), spread over cores when n exceeds `grain`. No call may depend on
/// another: f writes what no other call touches.
template <class F>
void map(Launch& launch, int64_t n, const F& f, int64_t grain = kGrain) {
  launch.forRanges(n, grain, [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) f(i);
  });
}

} // namespace puone::kernels::PUONE_ISA
