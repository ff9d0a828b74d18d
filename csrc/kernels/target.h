// SPDX-License-Identifier: BSD-3-Clause
// Marks of functions that run on the device: PUONE_FN for functions and members, PUONE_DEVICE for
// lambdas, [=] PUONE_DEVICE(int64_t i) {...}. The host's compiler needs no marks. For a device, the
// header simt_dialect.h on the include path defines them for its compiler, and also:
//
//   PUONE_GLOBAL(threads, blocks) a function that a launch starts: its blocks have at most that
//                                 many threads, for which there must be registers, and that many
//                                 blocks shall fit on a multiprocessor at a time
//   PUONE_SHARED                  memory of a block
//   PUONE_NOINLINE                a device function that is not to be inlined
//   PUONE_UNROLL                  before a loop that is to be unrolled
//   PUONE_ROLLED                  before a loop that is not to be unrolled
//   PUONE_ON_DEVICE               defined while code for the device itself is compiled
//   threadIdx, blockIdx, blockDim, gridDim (.x), __syncthreads, __shfl_*_sync, atomic*,
//   __threadfence                 with the meaning that vendors of such devices agree on
//   dialect::start(...)           starts a PUONE_GLOBAL function on a native stream
#pragma once

#ifdef PUONE_SIMT
#include "simt_dialect.h"
#else
#define PUONE_FN inline
#define PUONE_DEVICE
#endif
