// SPDX-License-Identifier: BSD-3-Clause
// Tensor cores for the kernels' SIMT flavour on a host: the lanes of a warp leave what they have
// where the others see it. Copies are made when they are started, which a device may do, too; that
// they are waited for is what the executor of PTX sees to (test/ptx).
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "kernels/types.h"
#include "simt_dialect.h"

namespace puone::standin {

/// What each lane of the warp brings.
template <class T>
class Together {
 public:
  explicit Together(const T& mine) : all_(warps()[place.thread.x / kWarp]) {
    all_[lane()] = mine;
    __syncwarp();
  }
  ~Together() {
    __syncwarp(); // nobody brings the next before all have read this
  }
  Together(const Together&) = delete;
  Together& operator=(const Together&) = delete;
  const T& operator[](uint32_t lane) const {
    return all_[lane];
  }

 private:
  static constexpr uint32_t kMostWarps = 32; // of a block
  using Warp = std::array<T, kWarp>;
  static std::array<Warp, kMostWarps>& warps() {
    static thread_local std::array<Warp, kMostWarps> all;
    return all;
  }
  Warp& all_;
};

/// Element i of a word.
template <kernels::dialect::TensorType kType>
float element(uint32_t word, uint32_t i) {
  using kernels::dialect::TensorType;
  if constexpr (kType == TensorType::kTf32) return std::bit_cast<float>(word & ~0x1fffu);
  using Stored = std::conditional_t<
      kType == TensorType::kBFloat16,
      kernels::PUONE_ISA::BFloat16,
      kernels::PUONE_ISA::Half>;
  return kernels::PUONE_ISA::toFloat(Stored{static_cast<uint16_t>(word >> 16 * i)});
}

} // namespace puone::standin

namespace puone::kernels::dialect {

template <TensorType kType>
void multiplyAdd(float (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  struct Words {
    uint32_t a[4], b[2];
  };
  using puone::standin::element;
  const uint32_t lane = puone::standin::lane();
  const puone::standin::Together<Words> words({{a[0], a[1], a[2], a[3]}, {b[0], b[1]}});
  constexpr uint32_t kElements = kType == TensorType::kTf32 ? 1 : 2; // of a word
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t row = lane / 4, column = lane % 4 * 2 + i % 2;
    for (uint32_t k = 0; k < 8; ++k) {
      const uint32_t from_a = words[row * 4 + k % 4].a[k / 4 * 2 + i / 2];
      const uint32_t from_b = words[column * 4 + k % 4].b[k / 4];
      for (uint32_t e = 0; e < kElements; ++e) {
        sums[i] += element<kType>(from_a, e) * element<kType>(from_b, e);
      }
    }
  }
}

template <bool kTransposed>
void loadMatrices(uint32_t (&out)[4], const void* row) {
  const uint32_t lane = puone::standin::lane();
  const puone::standin::Together<const void*> rows(row);
  for (uint32_t m = 0; m < 4; ++m) {
    const auto half = [&](uint32_t r, uint32_t c) {
      uint16_t bits = 0;
      std::memcpy(&bits, static_cast<const unsigned char*>(rows[8 * m + r]) + 2 * c, sizeof bits);
      return uint32_t{bits};
    };
    const uint32_t r = lane / 4, c = lane % 4 * 2;
    out[m] = kTransposed ? half(c, r) | half(c + 1, r) << 16 : half(r, c) | half(r, c + 1) << 16;
  }
}

inline uint32_t toTf32(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (value != value) return 0x7fffffff;
  return std::isinf(value) ? bits : (bits + 0x1000) & ~0x1fffu;
}

inline void startCopy(void* to, const void* from, int bytes) {
  constexpr size_t kBytes = 16;
  const auto aligned = [](const void* at) { return reinterpret_cast<uintptr_t>(at) % kBytes == 0; };
  if (bytes < 0 || bytes > static_cast<int>(kBytes) || !aligned(to) || !aligned(from)) std::abort();
  const auto read = static_cast<size_t>(bytes);
  if (read > 0) std::memcpy(to, from, read);
  std::memset(static_cast<unsigned char*>(to) + read, 0, kBytes - read);
}
inline void closeCopies() {}
template <int kNewest>
void awaitCopies() {}

} // namespace puone::kernels::dialect
