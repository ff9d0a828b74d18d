// SPDX-License-Identifier: BSD-3-Clause
// Generated elements on a device: one thread per element.
#pragma once

#include <cstdint>

#include "kernels/simt/cast.h"
#include "kernels/simt/map.h"

namespace puone::kernels::PUONE_ISA {

template <class T, class F>
void generate(
    Launch& launch, int64_t n, unsigned char* out, int64_t stride, int32_t dtype, const F& f) {
  map(launch, n, [=] PUONE_DEVICE(int64_t i) { storeAs<T>(out + i * stride, dtype, f(i)); });
}

} // namespace puone::kernels::PUONE_ISA
