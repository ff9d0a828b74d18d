// SPDX-License-Identifier: BSD-3-Clause
// Elements of a table, found by indices: "index_get", "index_put" and "index_reduce". Writes to the
// same destination are performed in order, so that a result does not depend on the schedule, unless
// the arguments permit it.
#include "kernels/args/indexing.h"
#include "kernels/families/indexing.h"

#ifdef PUONE_SIMT
#include "kernels/simt/indexing.h"
#else
#include "kernels/host/indexing.h"
#endif

namespace puone::kernels::PUONE_ISA {
PUONE_KERNEL(index_get) = indexGet;
PUONE_KERNEL(index_put) = indexPut;
PUONE_KERNEL(index_reduce) = indexReduce;

} // namespace puone::kernels::PUONE_ISA
