// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace puone::ptx {

/// The text with the line that PUONE_PTX_CHANGE ("ID LINE NEW TEXT OF THE LINE") changes, if it is
/// the text named: what tests must notice.
std::string changed(std::string text);

} // namespace puone::ptx
