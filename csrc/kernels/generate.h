// SPDX-License-Identifier: BSD-3-Clause
// The generate idiom: elements that depend on their number alone.
//
//   generate<T>(launch, n, out, stride, dtype, f);
//
// Stores f(i), a T, as the element of type `dtype` at out + i * stride, for every i in [0, n).
#pragma once

#ifdef PUONE_SIMT
#include "kernels/simt/generate.h"
#else
#include "kernels/host/generate.h"
#endif
