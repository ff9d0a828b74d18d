// SPDX-License-Identifier: BSD-3-Clause
// The entries of the extension "trace".
#include <cstdint>

#include "hal/hal.h"
#include "hal/validation/checks.h"
#include "hal/validation/extensions.h"
#include "hal/validation/refusals.h"

namespace puone::validation {
namespace {

const puone_trace_api* tracing = nullptr;

puone_status traceStop(const puone_trace_record** out, uint64_t* count) {
  constexpr const char* entry = "trace.stop";
  CHECKED(checkOut(entry, out));
  CHECKED(checkOut(entry, count));
  return answered(tracing->stop(out, count));
}

puone_status traceCorrelation(uint64_t* out) {
  CHECKED(checkOut("trace.correlation", out));
  return answered(tracing->correlation(out));
}

puone_trace_api wrapped(const puone_trace_api& api) {
  puone_trace_api result = api;
  result.stop = traceStop;
  result.correlation = traceCorrelation;
  return result;
}

} // namespace

const void* wrappedTrace(const void* found) {
  return wrappedOnce<wrapped>(found, tracing);
}

} // namespace puone::validation
