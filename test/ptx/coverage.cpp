// SPDX-License-Identifier: BSD-3-Clause
#include "coverage.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace puone::ptx {

Coverage& Coverage::instance() {
  static auto* const one = [] {
    std::atexit([] {
      Coverage& all = instance();
      const std::lock_guard guard(all.mutex_);
      for (const Module* module : all.modules_) all.write(*module);
    });
    return new Coverage;
  }();
  return *one;
}

void Coverage::add(const Module& module) {
  const std::lock_guard guard(mutex_);
  modules_.insert(&module);
}

void Coverage::remove(const Module& module) {
  const std::lock_guard guard(mutex_);
  if (modules_.erase(&module) != 0) write(module);
}

void Coverage::write(const Module& module) {
  const char* const directory = std::getenv("PUONE_PTX_COVERAGE");
  if (directory == nullptr || module.launches.empty()) return;
  const std::string stem = std::string(directory) + "/" + module.id();
  if (!std::filesystem::exists(stem + ".ptx")) std::ofstream(stem + ".ptx") << module.text();
  std::ofstream counts(
      stem + "." + std::to_string(getpid()) + "." + std::to_string(++serial_) + ".counts");
  for (size_t line = 1; line < module.counts.size(); ++line) {
    if (module.counts[line] > 0) counts << "line " << line << ' ' << module.counts[line] << '\n';
  }
  for (const auto& [entry, times] : module.launches) {
    counts << "grid " << times << ' ' << entry << '\n';
  }
}

std::string Coverage::patched(std::string text) const {
  const char* const change = std::getenv("PUONE_PTX_CHANGE");
  if (change == nullptr) return text;
  std::istringstream words(change);
  std::string id, line_text;
  uint32_t line = 0;
  words >> id >> line;
  std::getline(words >> std::ws, line_text);
  if (textId(text) != id) return text;
  size_t begin = 0;
  for (uint32_t i = 1; i < line; ++i) begin = text.find('\n', begin) + 1;
  return text.replace(begin, text.find('\n', begin) - begin, line_text);
}

} // namespace puone::ptx
