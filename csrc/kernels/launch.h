// SPDX-License-Identifier: BSD-3-Clause
// The interface between a kernel and the driver that runs it. Kernels are compiled in two flavours
// from one source: for a host's cores (host/), and for a device that runs blocks of threads,
// "single instruction, multiple threads" (simt/, if PUONE_SIMT is defined). The idioms have the
// same names in both.
#pragma once

#ifdef PUONE_SIMT
#include "kernels/simt/launch.h"
#else
#include "kernels/host/launch.h"
#endif
