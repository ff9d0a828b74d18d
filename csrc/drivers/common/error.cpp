// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/common/error.h"

#include <cstdarg>
#include <cstdio>

namespace puone {
namespace {

thread_local std::string last_error;
thread_local uint64_t last_origin = 0;

std::string vformat(const char* format, va_list arguments) {
  char buffer[512];
  std::vsnprintf(buffer, sizeof buffer, format, arguments);
  return buffer;
}

} // namespace

void fail(puone_status status, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  Error error{status, vformat(format, arguments)};
  va_end(arguments);
  throw error;
}

std::string format(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::string text = vformat(format, arguments);
  va_end(arguments);
  return text;
}

std::string humanBytes(uint64_t bytes) {
  const char* const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 6) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? format("%llu bytes", static_cast<unsigned long long>(bytes))
                   : format("%.2f %s", value, units[unit]);
}

const char* lastError() noexcept {
  return last_error.c_str();
}

uint64_t lastErrorOrigin() noexcept {
  return last_origin;
}

void setLastError(const char* entry, const std::string& text, uint64_t origin) noexcept {
  last_origin = origin;
  try {
    last_error = std::string(entry) + ": " + text;
  } catch (...) {
    last_error.clear();
  }
}

} // namespace puone
