// SPDX-License-Identifier: BSD-3-Clause
// What a kernel may ask of the driver that runs it. The kernels are compiled in two flavours from
// one source: for a host's cores (host/), and for a device that runs blocks of threads, "single
// instruction, multiple threads" (simt/, where PUONE_SIMT is defined). An idiom that kernels are
// written with has the same name in both.
#pragma once

#ifdef PUONE_SIMT
#include "kernels/simt/launch.h"
#else
#include "kernels/host/launch.h"
#endif
