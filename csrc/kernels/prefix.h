// SPDX-License-Identifier: BSD-3-Clause
// The prefix idiom: where each of several groups starts, from how many elements each has.
//
//   exclusiveSums(launch, values, n);   // values[i] = values[0] + ... + values[i - 1], in place
//
// With a 0 behind the last group, its sum is that of all.
#pragma once

#ifdef PUONE_SIMT
#include "kernels/simt/prefix.h"
#else
#include "kernels/host/prefix.h"
#endif
