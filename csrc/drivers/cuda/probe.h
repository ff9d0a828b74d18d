// SPDX-License-Identifier: BSD-3-Clause
// How many devices there are, found out without making later forks useless.
#pragma once

#include <cstdint>

namespace puone::cuda {

/// The number of devices; 0 without any, or without NVIDIA's driver. Throws Error(INTERNAL) if the
/// driver is there and cannot be used. The answer of the first call that succeeds is kept.
///
/// CUDA's driver must not be initialised for this: once it is, no child forked later can use it,
/// and a process that merely looks at the number may well fork. So another process asks. It is
/// started anew and not forked, since a thread of this one may hold a lock that CUDA needs.
int32_t deviceCount();

} // namespace puone::cuda
