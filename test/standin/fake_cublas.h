// SPDX-License-Identifier: BSD-3-Clause
// What a test asks of the library that stands in for cuBLAS, by dlsym().
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>

/// How it queues work on a stream: standinEnqueue. It refuses products until it is told.
using FakeCublasEnqueue = cudaError_t (*)(cudaStream_t, std::function<void()>);

extern "C" {

void fakeCublasEnqueueBy(FakeCublasEnqueue enqueue);

/// Products that were queued since the library was loaded.
size_t fakeCublasProducts();

/// From now on it refuses all products as not supported.
void fakeCublasRefuse();

} // extern "C"
