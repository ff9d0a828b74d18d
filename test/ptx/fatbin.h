// SPDX-License-Identifier: BSD-3-Clause
// What nvcc embeds in host code: device code for several architectures, PTX among it. Not
// documented by NVIDIA; the layout is that of nvcc 13.
#pragma once

#include <string>

namespace puone::ptx {

/// The PTX of the newest architecture in a fat binary, without the zeros behind it. Throws
/// std::runtime_error if there is none, or it is compressed in an unknown way.
std::string ptxOf(const void* fatbin);

} // namespace puone::ptx
