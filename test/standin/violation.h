// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace puone::standin {

/// For what CUDA leaves undefined: one line on stderr, then abort().
[[noreturn]] [[gnu::format(printf, 1, 2)]] void violation(const char* format, ...);

/// One line on stderr, for work that will fail: the error code alone says little.
[[gnu::format(printf, 1, 2)]] void complain(const char* format, ...);

} // namespace puone::standin
