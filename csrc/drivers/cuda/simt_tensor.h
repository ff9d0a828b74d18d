// SPDX-License-Identifier: BSD-3-Clause
// Defines for nvcc what kernels/simt/tensor.h asks for, by mma.sync, ldmatrix (PTX ISA 9.7.14.5)
// and cp.async (9.7.9.25.3), which compute capability 8.0 and later have.
#pragma once

#include <cstdint>

#define PUONE_MMA(shape, type)                                                   \
  asm volatile("mma.sync.aligned." shape ".row.col.f32." type "." type           \
               ".f32 "                                                           \
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
               : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])      \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

namespace puone::kernels::dialect {

template <TensorType kType>
__device__ inline void multiplyAdd(
    float (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  if constexpr (kType == TensorType::kFloat16) {
    PUONE_MMA("m16n8k16", "f16");
  } else if constexpr (kType == TensorType::kBFloat16) {
    PUONE_MMA("m16n8k16", "bf16");
  } else {
    PUONE_MMA("m16n8k8", "tf32");
  }
}

#define PUONE_LDMATRIX(transposed)                                                              \
  asm volatile("ldmatrix.sync.aligned.m8n8.x4" transposed ".shared.b16 {%0, %1, %2, %3}, [%4];" \
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])                         \
               : "r"(address)                                                                   \
               : "memory")

template <bool kTransposed>
__device__ inline void loadMatrices(uint32_t (&out)[4], const void* row) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  if constexpr (kTransposed) {
    PUONE_LDMATRIX(".trans");
  } else {
    PUONE_LDMATRIX("");
  }
}

__device__ inline uint32_t toTf32(float value) {
  uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return bits;
}

__device__ inline void startCopy(void* to, const void* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))),
                 "l"(__cvta_generic_to_global(from)),
                 "r"(bytes)
               : "memory");
}
__device__ inline void closeCopies() {
  asm volatile("cp.async.commit_group;" : : : "memory");
}
template <int kNewest>
__device__ inline void awaitCopies() {
  asm volatile("cp.async.wait_group %0;" : : "n"(kNewest) : "memory");
}

} // namespace puone::kernels::dialect

#undef PUONE_MMA
#undef PUONE_LDMATRIX
