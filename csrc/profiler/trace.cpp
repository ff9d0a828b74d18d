// SPDX-License-Identifier: BSD-3-Clause
#include "profiler/trace.h"

#include "runtime/extension.h"

namespace puone::profiler {

const puone_trace_api& tracing() {
  return requireExtension<puone_trace_api>(PUONE_TRACE_EXTENSION, PUONE_TRACE_VERSION);
}

} // namespace puone::profiler
