// SPDX-License-Identifier: BSD-3-Clause
// "cat", "triangle" and "repeat_interleave": rearranged elements.
#include "kernels/args/shape.h"
#include "kernels/families/shape.h"

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

} // namespace

PUONE_KERNEL(cat) = cat;
PUONE_KERNEL(repeat_interleave) = repeatInterleave;
PUONE_KERNEL(triangle) = triangle;

} // namespace puone::kernels::PUONE_ISA
