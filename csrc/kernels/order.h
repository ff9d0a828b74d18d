// SPDX-License-Identifier: BSD-3-Clause
// Sorted lines of elements: the kinds of results. args/order.h documents them.
#pragma once

#include "kernels/args/order.h"
#include "kernels/isa.h"
#include "kernels/launch.h"

namespace puone::kernels::PUONE_ISA {

enum class Wanted {
  kSorted,
  kKth,
  kMedian,
  kNanMedian,
  kMode
};

} // namespace puone::kernels::PUONE_ISA

#ifdef PUONE_SIMT
#include "kernels/simt/order.h"
#else
#include "kernels/host/order.h"
#endif
