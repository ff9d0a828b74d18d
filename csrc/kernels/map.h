// SPDX-License-Identifier: BSD-3-Clause
// The map idiom: one call of a function per index, in any order.
//
//   map(launch, n, [=] PUONE_DEVICE(int64_t i) { out[i] = f(in[i]); });
//
// f(i) is called for every i in [0, n). No call may depend on another: f writes what no other call
// touches. The function is copied to the device: it captures by value, and what it captures is
// trivially copyable. (A device's compiler may want such a lambda in a function that has a name:
// not inside another lambda that is a template.) The host spreads the calls over its cores when n
// exceeds the last argument, `grain`.
#pragma once

#ifdef PUONE_SIMT
#include "kernels/simt/map.h"
#else
#include "kernels/host/map.h"
#endif
