// SPDX-License-Identifier: BSD-3-Clause
// Operators for which torch does have a composite form that a device gets by default, but one that
// does not serve it. Layer and group norm subtract nearly equal numbers: the CPU's kernels do not.
// mode's out= form knows its devices by name.
#include <torch/library.h>

#include "aten/fallback.h"

namespace puone {

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  for (const char* name : {"native_layer_norm", "native_group_norm", "mode.values"}) {
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&cpuFallback>());
  }
}

} // namespace puone
