// SPDX-License-Identifier: BSD-3-Clause
#include "sanitizer/report.h"

#include <c10/util/StringUtil.h>

namespace puone::sanitizer {
namespace {

const char* headline(Kind kind) {
  switch (kind) {
    case Kind::Race:
      return "a race: nothing orders these accesses to the same memory";
    case Kind::Reuse:
      return "memory is reused while it is in use: nothing orders these accesses";
    case Kind::HostRace:
      return "the host uses pinned memory too early: nothing orders these accesses";
    case Kind::Uninitialized:
      return "device memory is read that was never written";
    case Kind::NeverRecorded:
      return "a wait for an event that was never recorded, which does not wait";
  }
  return "";
}

std::string describe(const ReportedAccess& access) {
  std::string text = c10::str("  ", access.mode);
  if (!access.argument.empty()) text += c10::str(" of ", access.argument);
  if (!access.work.empty()) text += c10::str(" by ", access.work);
  if (!access.operation.empty()) text += c10::str(" (", access.operation, ")");
  text += c10::str(" on ", access.stream);
  if (access.backward) text += ", in the backward pass of";
  return text + "\n" + access.stack;
}

} // namespace

const char* nameOf(Kind kind) {
  switch (kind) {
    case Kind::Race:
      return "race";
    case Kind::Reuse:
      return "memory_reuse";
    case Kind::HostRace:
      return "host_race";
    case Kind::Uninitialized:
      return "uninitialized_read";
    case Kind::NeverRecorded:
      return "event_never_recorded";
  }
  return "";
}

std::string textOf(const Report& report) {
  std::string text = c10::str("puone sanitizer: ", headline(report.kind), "\n");
  for (const ReportedAccess& access : report.accesses) text += describe(access);
  const ReportedMemory& memory = report.memory;
  if (memory.bytes != 0) {
    text += c10::str("  memory: ", memory.bytes, " bytes");
    if (memory.allocated != 0) text += c10::str(" of a block of ", memory.allocated);
    if (!memory.operation.empty()) text += c10::str(", allocated by ", memory.operation);
    text += "\n" + memory.stack;
  }
  return text + "  missing: " + report.advice + "\n";
}

} // namespace puone::sanitizer
