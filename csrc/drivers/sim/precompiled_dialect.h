// SPDX-License-Identifier: BSD-3-Clause
// The dialect as a precompiled header, with which a kernel compiles in half of the time.
#pragma once

#include <string>

#include "drivers/sim/compiler.h"

namespace puone::sim {

/// The path of a header to include in the place of the dialect's text; empty if there is none. It
/// is in the cache of images and made when a process compiles for the second time: it takes as long
/// as a kernel, which is too long for a program of one kernel. The compiler ignores it where it
/// does not fit. Thread-safe; processes may make it at the same time.
std::string precompiledDialect(const Compiler& compiler, const std::string& isa, bool contracts);

} // namespace puone::sim
