// SPDX-License-Identifier: BSD-3-Clause
// What the sanitizer finds, for people and for programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/python_stack.h"

namespace puone::sanitizer {

enum class Kind {
  Race,          // two accesses that nothing orders
  Reuse,         // the same, and the second has got the memory of a freed tensor
  HostRace,      // the same, and one is the host's, to pinned memory
  Uninitialized, // device memory that was never written is read
  NeverRecorded, // a wait for an event that was never recorded
};

// "race", "memory_reuse", "host_race", "uninitialized_read", "event_never_recorded"
const char* nameOf(Kind kind);

struct ReportedAccess {
  std::string mode;      // "read", "write", "read and write"
  std::string argument;  // of the kernel, or of the operator for the host
  std::string work;      // the kernel, or "memcpy_async", "memset_async", "host"
  std::string operation; // the operator, or the node of a backward pass; "" if there was none
  bool backward = false; // the stack is the one of the forward operator
  std::string stream;    // "stream 3 of puone:0", "the default stream of puone:0", "the host"
  std::vector<PythonFrame> frames; // innermost first
  std::string stack;               // the same as text
};

struct ReportedMemory {
  uintptr_t address = 0; // of the bytes in question
  uintptr_t bytes = 0;
  uintptr_t allocated = 0; // bytes of the allocation, 0 if it is not known
  std::string operation;   // the operator that allocated it
  std::string stack;
};

struct Report {
  Kind kind;
  std::vector<ReportedAccess> accesses; // in the order in which they were issued
  ReportedMemory memory;
  std::string advice; // what is missing
  std::string text;   // all of it
};

// The text of a report whose other members are set.
std::string textOf(const Report& report);

} // namespace puone::sanitizer
