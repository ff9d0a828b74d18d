// SPDX-License-Identifier: BSD-3-Clause
// Images of modules (hal/module.h): what the compiler made, behind a header that says for which
// driver and target, and recognises damage.
#pragma once

#include <string>
#include <string_view>

#include "drivers/common/sha256.h"

namespace puone {

struct Image {
  std::string_view target;
  std::string_view code; // what the compiler made
};

/// Of the dialect that this driver was built with (kernels/module_dialect.h). Computed once.
const Sha256::Digest& dialectDigest();

/// `driver` is its name.
std::string packed(std::string_view driver, const Image& image);

/// The parts of packed bytes. Throws Error(INVALID_ARGUMENT) if they are damaged, or made for
/// another driver or dialect.
Image unpacked(std::string_view driver, std::string_view bytes);

} // namespace puone
