// SPDX-License-Identifier: BSD-3-Clause
#include "changes.h"

#include <cstdint>
#include <cstdlib>
#include <sstream>

#include "source.h"

namespace puone::ptx {

std::string changed(std::string text) {
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
