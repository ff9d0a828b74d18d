// SPDX-License-Identifier: BSD-3-Clause
// Elements of a table, found by indices: "index_get", "index_put" and "index_reduce". Writes that
// may meet are done in order, so that a result never depends on the schedule.
#include "kernels/args/indexing.h"
#include "kernels/entry.h"
#include "kernels/families.h"

#ifdef PUONE_SIMT
#include "kernels/simt/indexing.h"
#else
#include "kernels/host/indexing.h"
#endif

namespace puone::kernels::PUONE_ISA {
namespace {

constexpr Kernel kKernels[] = {
    entry<puone_indexing_args, indexGet>("index_get"),
    entry<puone_indexing_args, indexPut>("index_put"),
    entry<puone_indexing_args, indexReduce>("index_reduce"),
};

} // namespace

std::span<const Kernel> indexingKernels() {
  return kKernels;
}

} // namespace puone::kernels::PUONE_ISA
