// SPDX-License-Identifier: BSD-3-Clause
// The source of a module as the compiler gets it.
#pragma once

#include <string>
#include <string_view>

#include "kernels/module_dialect.h"

namespace puone {

/// `source` behind the dialect and inside of its namespace. Compilers call its first line line 1 of
/// "source".
inline std::string inDialect(std::string_view source) {
  std::string text(kernels::moduleDialect());
  text.append("namespace puone::kernels::PUONE_ISA {\n#line 1 \"source\"\n");
  return text.append(source).append("\n}\n");
}

} // namespace puone
