// SPDX-License-Identifier: BSD-3-Clause
// Included by the copies of sources that hold lies: does this process tell one (PUONE_LIE=id)?
#pragma once

#include <cstdlib>
#include <string_view>

inline bool puone_lies(std::string_view id) {
  static const char* const told = std::getenv("PUONE_LIE");
  return told != nullptr && id == told;
}
