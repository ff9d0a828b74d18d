// SPDX-License-Identifier: BSD-3-Clause
#include "profiler/trace.h"

#include "runtime/driver.h"

namespace puone::profiler {

const puone_trace_api& tracing() {
  const void* table = nullptr;
  PUONE_CHECK_STATUS(
      hal().get_extension(PUONE_TRACE_EXTENSION, PUONE_TRACE_VERSION, &table),
      "get_extension(\"trace\")");
  return *static_cast<const puone_trace_api*>(table);
}

} // namespace puone::profiler
