// SPDX-License-Identifier: BSD-3-Clause
// Vectors of the instruction set that the kernels are compiled for, where a loop is not enough.
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "kernels/host/vector_bytes.h"
#include "kernels/isa.h"

namespace puone::kernels::PUONE_ISA {

typedef uint64_t Lanes64 __attribute__((vector_size(kVectorBytes)));
constexpr int64_t kLanes64 = kVectorBytes / 8;

/// The products of the low halves of all lanes. Compilers make loops over this slower than one
/// instruction: they widen halves that lie side by side.
inline Lanes64 productOfLowHalves(Lanes64 a, Lanes64 b) {
#if defined(__AVX512F__)
  // GCC takes the result's lanes in _mm512_mul_epu32 for uninitialised.
  return (Lanes64)_mm512_maskz_mul_epu32((__mmask8)-1, (__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
  return (Lanes64)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined(__SSE2__) && !defined(__AVX__)
  return (Lanes64)_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
  return (a & 0xffffffff) * (b & 0xffffffff);
#endif
}

} // namespace puone::kernels::PUONE_ISA
