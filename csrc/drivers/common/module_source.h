// SPDX-License-Identifier: BSD-3-Clause
// The source of a module as the compiler gets it.
#pragma once

#include <string>
#include <string_view>

#include "kernels/module_dialect.h"

namespace puone {

/// `source` inside of the dialect's namespace. Compilers call its first line line 1 of "source".
inline std::string inNamespace(std::string_view source) {
  std::string text("namespace puone::kernels::PUONE_ISA {\n#line 1 \"source\"\n");
  return text.append(source).append("\n}\n");
}

/// The same behind the dialect.
inline std::string inDialect(std::string_view source) {
  return std::string(kernels::moduleDialect()).append(inNamespace(source));
}

} // namespace puone
