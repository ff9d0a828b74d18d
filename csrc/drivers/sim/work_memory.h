// SPDX-License-Identifier: BSD-3-Clause
// Memory of queued work. For each launch, one thread allocates it and another one frees it, which
// is slow with general allocators. So chunks of one size are passed between the threads.
#pragma once

#include <cstddef>

namespace puone::sim {

/// Allocates at least `bytes` bytes, aligned as by malloc(). Thread-safe. Throws std::bad_alloc.
void* allocateWork(size_t bytes);

/// Frees memory of allocateWork(), on any thread.
void freeWork(void* memory) noexcept;

} // namespace puone::sim
