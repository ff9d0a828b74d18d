// SPDX-License-Identifier: BSD-3-Clause
// The prefix idiom: the start of each of several groups, from their sizes.
//
//   exclusiveSums(launch, values, n);   // values[i] = values[0] + ... + values[i - 1], in place
//
// With a 0 after the last group, the last value is the sum of all.
#pragma once

#ifdef PUONE_SIMT
#include "kernels/simt/prefix.h"
#else
#include "kernels/host/prefix.h"
#endif
