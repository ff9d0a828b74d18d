// SPDX-License-Identifier: BSD-3-Clause
// "cat", "triangle" and "repeat_interleave": elements in another place.
#include "kernels/args/shape.h"
#include "kernels/entry.h"
#include "kernels/families.h"

#ifdef PUONE_SIMT
#include "kernels/simt/shape.h"
#else
#include "kernels/host/shape.h"
#endif

namespace puone::kernels::PUONE_ISA {
namespace {

void repeatInterleave(Launch& launch, const puone_repeat_args& args) {
  if (args.dtype == PUONE_INT64) {
    repeatInterleaveOf<int64_t>(launch, args);
  } else {
    repeatInterleaveOf<int32_t>(launch, args);
  }
}

constexpr Kernel kKernels[] = {
    entry<puone_cat_args, cat>("cat"),
    entry<puone_repeat_args, repeatInterleave>("repeat_interleave"),
    entry<puone_triangle_args, triangle>("triangle"),
};

} // namespace

std::span<const Kernel> shapeKernels() {
  return kKernels;
}

} // namespace puone::kernels::PUONE_ISA
