// SPDX-License-Identifier: BSD-3-Clause
// Sorting and what follows from an order.
#include "kernels/order.h"

#include "kernels/entry.h"
#include "kernels/families.h"

namespace puone::kernels::PUONE_ISA {
namespace {

constexpr Kernel kKernels[] = {
    entry<puone_order_args, order<Wanted::kSorted>>("sort"),
    entry<puone_order_args, order<Wanted::kKth>>("kth"),
    entry<puone_order_args, order<Wanted::kMedian>>("median"),
    entry<puone_order_args, order<Wanted::kNanMedian>>("nanmedian"),
    entry<puone_order_args, order<Wanted::kMode>>("mode"),
};

} // namespace

std::span<const Kernel> orderKernels() {
  return kKernels;
}

} // namespace puone::kernels::PUONE_ISA
