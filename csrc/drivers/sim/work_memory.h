// SPDX-License-Identifier: BSD-3-Clause
// Memory of queued work. One thread allocates it and another one frees it, for each launch: the
// case that general allocators serve worst, so chunks of one size are passed back and forth.
#pragma once

#include <cstddef>

namespace puone::sim {

/// At least `bytes` bytes, aligned as by malloc(). Thread-safe. Throws std::bad_alloc.
void* allocateWork(size_t bytes);

/// Returns what allocateWork() gave, on any thread.
void freeWork(void* memory) noexcept;

} // namespace puone::sim
