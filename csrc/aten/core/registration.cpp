// SPDX-License-Identifier: BSD-3-Clause
#include "aten/core/registration.h"

#include <string>
#include <utility>

namespace puone::registration_detail {

void add(torch::Library& m, const char* name, const char* overload, torch::CppFunction&& function) {
  std::string full = name;
  if (*overload != '\0') full.append(".").append(overload);
  m.impl(full.c_str(), std::move(function));
}

} // namespace puone::registration_detail
