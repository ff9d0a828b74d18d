// SPDX-License-Identifier: BSD-3-Clause
// Operators for which torch does have a composite form that a device gets by default, but one that
// does not serve it: mode's out= form knows its devices by name.
#include <torch/library.h>

#include "aten/fallback.h"

namespace puone {

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("mode.values", torch::CppFunction::makeFromBoxedFunction<&cpuFallback>());
}

} // namespace puone
