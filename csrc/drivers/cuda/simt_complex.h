// SPDX-License-Identifier: BSD-3-Clause
// The functions of complex numbers that nvcc has for the device.
#pragma once

#include <cuda/std/complex>

#define PUONE_COMPLEX_LIBRARY ::cuda::std
