// SPDX-License-Identifier: BSD-3-Clause
// Elements in memory and their compute type: stored<E, T>(dtype) returns an object with
//
//   Value                       T
//   load(data, index)           the element as a T
//   store(data, index, value)   rounds a T to an element
//
// Kernels are instantiated for its type: on a host once per type E, on a device once per T.
#pragma once

#ifdef PUONE_SIMT
#include "kernels/simt/stored.h"
#else
#include "kernels/host/stored.h"
#endif
