// SPDX-License-Identifier: BSD-3-Clause
// What a function that touches elements is marked with: the same source is compiled by a host
// compiler for the sim driver and by a device compiler for a real device.
#pragma once

#ifdef __CUDACC__
#define PUONE_FN __host__ __device__ __forceinline__ // member functions of functors, helpers
#define PUONE_DEVICE __device__                      // lambdas: [=] PUONE_DEVICE (int64_t i) {...}
#else
#define PUONE_FN inline
#define PUONE_DEVICE
#endif
