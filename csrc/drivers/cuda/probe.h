// SPDX-License-Identifier: BSD-3-Clause
// How many devices there are, found out without making later forks useless.
#pragma once

#include <cstdint>

namespace puone::cuda {

/// The number of devices; 0 without any, or without NVIDIA's driver. Throws Error(INTERNAL) if the
/// driver is there and cannot be used. The answer of the first call that succeeds is kept.
///
/// This must not initialise CUDA's driver: children forked afterwards could not use CUDA, and a
/// process that only reads the number of devices may fork. So another process asks. It is started
/// as a new program and not forked, because a thread of this process may hold a lock that CUDA
/// needs.
int32_t deviceCount();

} // namespace puone::cuda
