// SPDX-License-Identifier: BSD-3-Clause
#include "aten/core/fallback.h"

#include <pybind11/stl.h>

#include "bindings/bindings.h"

namespace puone {

void bindFallback(pybind11::module_& m) {
  m.def("fallback_counts", &fallbackCounts);
  m.def("reset_fallback_counts", &resetFallbackCounts);
}

} // namespace puone
