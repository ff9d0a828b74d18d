// SPDX-License-Identifier: BSD-3-Clause
// What a driver puts in front of the source of a module: module.h and all that it includes, as one
// text, so that a driver needs no files beside it. amalgamate.py makes it when the project is
// built.
#pragma once

#include <string_view>

namespace puone::kernels {

/// The text in the flavour of the driver that this is linked into.
std::string_view moduleDialect();

} // namespace puone::kernels
