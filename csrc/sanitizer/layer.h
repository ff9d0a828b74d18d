// SPDX-License-Identifier: BSD-3-Clause
// Turns the stream sanitizer on and off. While it is on, the runtime uses a copy of the driver's
// table whose entries report to the sanitizer what they queued, ordered and freed; otherwise it
// uses the driver's table as it is, so that the sanitizer costs nothing while it is off.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/stream.h"
#include "sanitizer/report.h"

namespace puone::sanitizer {

// What happens as soon as something is found.
enum class OnReport {
  Raise,   // the call that completes the error throws c10::Error, after its work was queued
  Warn,    // TORCH_WARN
  Collect, // nothing; reports() has it
};

// Waits for all devices, then watches all threads. What was written before counts as initialised.
// Done again, it changes what happens with reports. Throws what a synchronisation throws, and
// c10::Error while a graph is being captured.
void enable(OnReport on_report);
void disable();
bool isEnabled() noexcept;
// What happens with reports; nothing if the sanitizer is off.
std::optional<OnReport> reaction() noexcept;

// What was found since clearReports(), each pair of places in the program once.
std::vector<Report> reports();
void clearReports();

// The reports from beginBlock(), which gives a number, to endBlock() of this number, each pair of
// places once in the block. Blocks may overlap, and clearReports() leaves them alone.
uint64_t beginBlock();
std::vector<Report> endBlock(uint64_t number);

// A wait of the stream, or with NULL of the host, for an event that was never recorded. PyTorch
// drops such waits, so that the driver does not see them.
void neverRecorded(const Stream* waiting);

} // namespace puone::sanitizer
