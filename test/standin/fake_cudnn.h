// SPDX-License-Identifier: BSD-3-Clause
// What a test asks of the library that stands in for cuDNN, by dlsym(). It refuses convolutions
// until the stand-in has given it its services (PUONE_STANDIN_LIBRARY).
#pragma once

#include <cstddef>

extern "C" {

/// Since the library was loaded: convolutions and gradients that were queued, of these those with a
/// bias, questions for workspace, and handles that were made.
size_t fakeCudnnConvolutions();
size_t fakeCudnnBiases();
size_t fakeCudnnPlans();
size_t fakeCudnnHandles();

/// From now on every question for workspace is answered by this status.
void fakeCudnnRefuse(int status);

} // extern "C"
