// SPDX-License-Identifier: BSD-3-Clause
// Elements in memory and what is computed in for them: stored<E, T>(dtype) gives something with
//
//   Value                       T
//   load(data, index)           the element as a T
//   store(data, index, value)   rounds a T to an element
//
// whose type kernels are instantiated for: on a host one per type E, on a device one per T.
#pragma once

#ifdef PUONE_SIMT
#include "kernels/simt/stored.h"
#else
#include "kernels/host/stored.h"
#endif
