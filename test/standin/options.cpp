// SPDX-License-Identifier: BSD-3-Clause
#include "options.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string_view>

#include "violation.h"

namespace puone::standin {
namespace {

constexpr std::string_view kPrefix = "PUONE_STANDIN_";
constexpr std::string_view kKnown[] = {
    "BLOCKS", "DEVICES", "FAIL", "LIBRARY", "MEMORY", "NO_DRIVER", "SEED", "UNGUARDED"};

/// A misspelt option must not pass for one that has no effect.
void refuseUnknown() {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view variable(*entry);
    if (!variable.starts_with(kPrefix)) continue;
    const std::string_view name = variable.substr(0, variable.find('=')).substr(kPrefix.size());
    if (std::ranges::count(kKnown, name) == 0) violation("%s is no option of it", *entry);
  }
}

uint64_t number(const std::string& text, uint64_t most) {
  char* end = nullptr;
  const uint64_t value = std::strtoull(text.c_str(), &end, 10);
  if (text.empty() || text[0] < '0' || text[0] > '9' || *end != '\0' || value > most) {
    violation(
        "\"%s\" is no number up to %llu", text.c_str(), static_cast<unsigned long long>(most));
  }
  return value;
}

uint64_t number(const char* variable, uint64_t fallback, uint64_t most) {
  const char* value = std::getenv(variable);
  return value != nullptr ? number(std::string(value), most) : fallback;
}

std::vector<Planted> plantedIn(const char* text) {
  std::vector<Planted> all;
  std::istringstream stream(text != nullptr ? text : "");
  for (std::string item; std::getline(stream, item, ',');) {
    const size_t colon = item.find(':');
    const size_t equals = item.find('=');
    if (colon == std::string::npos || equals == std::string::npos || equals < colon) {
      violation("PUONE_STANDIN_FAIL: \"%s\" is not name:nth=error", item.c_str());
    }
    const uint64_t nth = number(item.substr(colon + 1, equals - colon - 1), UINT64_MAX);
    const uint64_t error = number(item.substr(equals + 1), 10'000);
    all.push_back({item.substr(0, colon), nth, static_cast<cudaError_t>(error)});
  }
  return all;
}

} // namespace

Options Options::fromEnvironment() {
  refuseUnknown();
  Options options;
  options.driver = number("PUONE_STANDIN_NO_DRIVER", 0, 1) == 0;
  options.devices = static_cast<int>(number("PUONE_STANDIN_DEVICES", 2, 16));
  options.memory = number("PUONE_STANDIN_MEMORY", options.memory >> 20, 1 << 20) << 20;
  options.adversarial = std::getenv("PUONE_STANDIN_SEED") != nullptr;
  options.seed = number("PUONE_STANDIN_SEED", 0, UINT64_MAX);
  options.blocks = static_cast<uint32_t>(number("PUONE_STANDIN_BLOCKS", 1, 64));
  options.guarded = number("PUONE_STANDIN_UNGUARDED", 0, 1) == 0;
  if (const char* library = std::getenv("PUONE_STANDIN_LIBRARY")) options.library = library;
  options.planted = plantedIn(std::getenv("PUONE_STANDIN_FAIL"));
  return options;
}

} // namespace puone::standin
