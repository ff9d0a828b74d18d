// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/sim/options.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "drivers/common/error.h"

namespace puone::sim {
namespace {

const char* get(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

[[noreturn]] void bad(const char* name, const char* value, const char* expected) {
  fail(PUONE_INTERNAL, "%s=%s is not valid: expected %s", name, value, expected);
}

/// A decimal number, optionally followed by one of `suffixes`, each worth 1024 times the one
/// before.
uint64_t number(const char* name, const char* value, const char* suffixes, const char* expected) {
  if (*value < '0' || *value > '9') bad(name, value, expected);
  char* end = nullptr;
  errno = 0;
  unsigned long long result = std::strtoull(value, &end, 10);
  if (errno != 0) bad(name, value, expected);
  if (*end != '\0' && *suffixes != '\0') {
    const char* suffix = std::strchr(suffixes, *end & ~0x20);
    if (suffix == nullptr || end[1] != '\0') bad(name, value, expected);
    for (const char* s = suffixes; s <= suffix; ++s) {
      if (result >> 54 != 0) bad(name, value, expected);
      result <<= 10;
    }
  } else if (*end != '\0') {
    bad(name, value, expected);
  }
  return result;
}

uint64_t bounded(
    const char* name,
    uint64_t fallback,
    uint64_t low,
    uint64_t high,
    const char* expected,
    const char* suffixes = "") {
  const char* value = get(name);
  if (value == nullptr) return fallback;
  uint64_t result = number(name, value, suffixes, expected);
  if (result < low || result > high) bad(name, value, expected);
  return result;
}

constexpr std::string_view kPrefix = "PUONE_SIM_";
constexpr std::string_view kKnown[] = {
    "CORES", "DEVICES", "ISA", "LATENCY_US", "MEMORY", "POISON", "SEED"};

/// Refuses unknown variables: a misspelt option must not be ignored silently.
void refuseUnknown() {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view variable(*entry);
    if (!variable.starts_with(kPrefix)) continue;
    const std::string_view name = variable.substr(0, variable.find('=')).substr(kPrefix.size());
    if (std::find(std::begin(kKnown), std::end(kKnown), name) != std::end(kKnown)) continue;
    std::string known;
    for (const std::string_view k : kKnown) known.append(" ").append(kPrefix).append(k);
    fail(
        PUONE_INTERNAL,
        "%s is no option of the sim driver; expected one of%s",
        *entry,
        known.c_str());
  }
}

int32_t usableCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return CPU_COUNT(&set);
}

} // namespace

Options Options::fromEnvironment() {
  refuseUnknown();
  Options options;
  options.devices = static_cast<int32_t>(
      bounded("PUONE_SIM_DEVICES", 2, 0, 64, "a number of devices from 0 to 64"));
  options.memory = bounded(
      "PUONE_SIM_MEMORY",
      options.memory,
      1 << 20,
      uint64_t{1} << 40,
      "bytes per device from 1M to 1T, such as 512M or 4G",
      "KMGT");
  options.adversarial = get("PUONE_SIM_SEED") != nullptr;
  options.seed = bounded("PUONE_SIM_SEED", 0, 0, UINT64_MAX, "a seed (an unsigned 64-bit number)");
  options.poison = bounded("PUONE_SIM_POISON", 0, 0, 1, "0 or 1") != 0;
  options.latency_ns =
      1000 * bounded("PUONE_SIM_LATENCY_US", 0, 0, 60'000'000, "microseconds, at most 60000000");
  if (const char* isa = get("PUONE_SIM_ISA")) options.isa = isa;
  options.cores = static_cast<int32_t>(bounded(
      "PUONE_SIM_CORES",
      static_cast<uint64_t>(usableCores()),
      1,
      256,
      "a number of host cores from 1 to 256"));
  return options;
}

} // namespace puone::sim
