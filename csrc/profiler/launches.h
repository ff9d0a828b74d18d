// SPDX-License-Identifier: BSD-3-Clause
// The host's side of a trace: which call queued each piece of work, and inside of which operator.
//
// While launches are observed, the runtime uses a copy of the driver's table, or of the sanitizer's
// over it, whose entries that queue work note what they queued. Otherwise it uses the table
// underneath as it is, so that observing costs nothing while it is off.
#pragma once

#include <cstdint>
#include <vector>

namespace puone::profiler {

/// One call that queued a piece of work.
struct Launch {
  const char* entry;    // of the HAL
  uint64_t correlation; // of puone_trace_record
  uint64_t operation;   // id of the innermost operator, 0 if there was none
  uint64_t range;       // id of the innermost range of the user's, 0 if there was none
  int64_t begin_ns;     // on the host's CLOCK_MONOTONIC
  int64_t end_ns;
  int32_t thread; // as the system numbers it
};

/// Starts the driver's trace and observes all threads. Throws NotImplementedError if the driver has
/// no trace, and c10::Error if it is on already.
void observeLaunches();

/// Ends that; the launches in no particular order. The trace goes on.
std::vector<Launch> observedLaunches();

/// Which operators and ranges the calling thread is in. Ids are not 0.
void enterOperation(uint64_t id);
void leaveOperation();
void enterRange(uint64_t id);
void leaveRange();

} // namespace puone::profiler
