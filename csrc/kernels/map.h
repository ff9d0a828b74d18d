// SPDX-License-Identifier: BSD-3-Clause
// The map idiom: one call of a function per index, in any order.
//
//   map(launch, n, [=] PUONE_DEVICE(int64_t i) { out[i] = f(in[i]); });
//
// f(i) is called for every i in [0, n). Calls must be independent: no call may access what another
// one writes. The function is copied to the device: it captures trivially copyable values, by
// value. (Some device compilers do not accept such a lambda inside a generic lambda.) The host
// spreads the calls over its cores if n exceeds the last argument, `grain`.
#pragma once

#ifdef PUONE_SIMT
#include "kernels/simt/map.h"
#else
#include "kernels/host/map.h"
#endif
