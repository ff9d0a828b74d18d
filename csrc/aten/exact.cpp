// SPDX-License-Identifier: BSD-3-Clause
// Operators for which torch does have a composite form that a device gets by default, but one that
// loses digits: layer and group norm subtract nearly equal numbers, and addr rounds twice. The
// CPU's kernels do neither.
#include <torch/library.h>

#include "aten/fallback.h"

namespace puone {

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  for (const char* name : {"native_layer_norm", "native_group_norm", "addr", "addr.out"}) {
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&cpuFallback>());
  }
}

} // namespace puone
