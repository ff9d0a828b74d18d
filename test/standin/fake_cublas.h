// SPDX-License-Identifier: BSD-3-Clause
// What a test asks of the library that stands in for cuBLAS and cuBLASLt, by dlsym(). It refuses
// products until the stand-in has given it its services (PUONE_STANDIN_LIBRARY).
#pragma once

#include <cstddef>

extern "C" {

/// Products that were queued since the library was loaded.
size_t fakeCublasProducts();

/// Handles that were made since then. A handle that two threads use at the same time ends the
/// process.
size_t fakeCublasHandles();

/// From now on cuBLAS refuses all products as not supported.
void fakeCublasRefuse();

/// Products of cuBLASLt that were queued, and algorithms that it was asked for.
size_t fakeCublasLtProducts();
size_t fakeCublasLtPlans();

/// From now on cuBLASLt has no algorithm.
void fakeCublasLtRefuse();

} // extern "C"
