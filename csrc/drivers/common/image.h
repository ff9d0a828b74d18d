// SPDX-License-Identifier: BSD-3-Clause
// Images of modules (hal/module.h): what the compiler made, behind a header that says for which
// driver and target, and recognises damage.
#pragma once

#include <string>
#include <string_view>

namespace puone {

struct Image {
  std::string_view target;
  std::string_view code; // what the compiler made
};

/// `driver` is its name; `dialect` is what its modules are compiled against (moduleDialect()).
std::string packed(std::string_view driver, std::string_view dialect, const Image& image);

/// The parts of packed bytes. Throws Error(INVALID_ARGUMENT) if they are damaged, or made for
/// another driver or dialect.
Image unpacked(std::string_view driver, std::string_view dialect, std::string_view bytes);

} // namespace puone
