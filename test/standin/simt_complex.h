// SPDX-License-Identifier: BSD-3-Clause
// The host's functions of complex numbers.
#pragma once

#include <complex>

#define PUONE_COMPLEX_LIBRARY std
