// SPDX-License-Identifier: BSD-3-Clause
// Sorting and what follows from an order.
#include "kernels/order.h"

#include "kernels/families/order.h"

namespace puone::kernels::PUONE_ISA {
PUONE_KERNEL(sort) = order<Wanted::kSorted>;
PUONE_KERNEL(kth) = order<Wanted::kKth>;
PUONE_KERNEL(median) = order<Wanted::kMedian>;
PUONE_KERNEL(nanmedian) = order<Wanted::kNanMedian>;
PUONE_KERNEL(mode) = order<Wanted::kMode>;

#ifdef PUONE_SIMT
template SortedItems<uint64_t> radixSort(
    Launch& launch,
    KeyedItem<uint64_t>* items,
    KeyedItem<uint64_t>* others,
    int64_t lines,
    int64_t n,
    int32_t bits);
#endif

} // namespace puone::kernels::PUONE_ISA
