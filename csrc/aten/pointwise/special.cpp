// SPDX-License-Identifier: BSD-3-Clause
// Error functions, gamma functions and the like.
#include <torch/library.h>

#include "aten/core/elementwise.h"
#include "aten/pointwise/special_ops.h"

#include "aten/pointwise/special_registrations.inc"
