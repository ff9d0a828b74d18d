// SPDX-License-Identifier: BSD-3-Clause
#include "violation.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace puone::standin {
namespace {

void say(const char* format, va_list arguments) {
  char text[512];
  std::vsnprintf(text, sizeof text, format, arguments);
  std::fprintf(stderr, "standin: %s\n", text);
}

} // namespace

void violation(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  say(format, arguments);
  va_end(arguments);
  std::abort();
}

void complain(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  say(format, arguments);
  va_end(arguments);
}

} // namespace puone::standin
