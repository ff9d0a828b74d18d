// SPDX-License-Identifier: BSD-3-Clause
// Differences between the supported torch versions (2.11 to 2.15), in one place.
#pragma once

#include <torch/version.h>

// True when building against torch MAJOR.MINOR or newer.
#define PUONE_TORCH_AT_LEAST(major, minor) \
  (TORCH_VERSION_MAJOR > (major) ||        \
   (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))
