// SPDX-License-Identifier: BSD-3-Clause
// The map idiom on a host: one loop per core, which the compiler may vectorise.
#pragma once

#include <cstdint>

#include "kernels/isa.h"
#include "kernels/launch.h"
#include "kernels/strided.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {

template <class F>
void map(Launch& launch, int64_t n, const F& f, int64_t grain = kGrain) {
  launch.forRanges(n, grain, [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) f(i);
  });
}

} // namespace puone::kernels::PUONE_ISA
