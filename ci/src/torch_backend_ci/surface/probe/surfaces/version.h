// SPDX-License-Identifier: BSD-3-Clause
// Which torch the probe is written for.
#pragma once

#include <torch/version.h>

// The one it is compiled with, unless the command line says otherwise: that is how a backend
// written for one torch meets the next.
#ifndef PROBE_FOR
#define PROBE_FOR (TORCH_VERSION_MAJOR * 100 + TORCH_VERSION_MINOR)
#endif
#define PROBE_TORCH(major, minor) (PROBE_FOR >= (major) * 100 + (minor))
