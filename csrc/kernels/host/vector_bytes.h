// SPDX-License-Identifier: BSD-3-Clause
// How wide the vectors of the instruction set are that the kernels are compiled for.
#pragma once

#include "kernels/isa.h"

namespace puone::kernels::PUONE_ISA {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

} // namespace puone::kernels::PUONE_ISA
