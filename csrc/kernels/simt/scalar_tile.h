// SPDX-License-Identifier: BSD-3-Clause
// Tiles for gemm.h of any type: every thread multiplies and adds a small tile of its own.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/compute.h"
#include "kernels/simt/gemm.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {

/// A block's tile and a thread's part of it.
template <class T, int kRows_, int kColumns_, int kDepth_, int kThreadRows, int kThreadColumns>
struct ScalarTile {
  using Sum = T;
  static constexpr bool kCopied = false;
  static constexpr int kBuffers = 2;
  static constexpr int kRows = kRows_;
  static constexpr int kColumns = kColumns_;
  static constexpr int kDepth = kDepth_;
  static constexpr int kThreadsDown = kRows / kThreadRows;
  static constexpr int kThreadsAcross = kColumns / kThreadColumns;
  static constexpr int kThreads = kThreadsDown * kThreadsAcross;
  static constexpr int kBlocks = sizeof(T) == 16 ? 1 : 2;
  static constexpr int kGatheringBlocks = kBlocks;
  static constexpr int kStages = kThreadRows;
  static constexpr int kStageRows = kThreadsDown;
  static constexpr int kStagePitch = kColumns;

  /// Elements in 16 bytes of shared memory, at least one.
  static constexpr int kWidth = sizeof(T) < 16 ? 16 / sizeof(T) : 1;
  struct alignas(16) Vector {
    T values[kWidth];
  };
  template <int kLength>
  using Panel = T[kDepth][kLength + kWidth];
  struct Shared {
    alignas(16) Panel<kRows> left[kBuffers];
    alignas(16) Panel<kColumns> right[kBuffers];
  };

  template <class Factor>
  static bool isAlongDepth(const Factor& factor) {
    return factor.isAlongDepth();
  }

  /// A thread's elements, spread over the step: neighbouring threads fetch neighbouring ones.
  template <class Factor, int kLength>
  class Part {
   public:
    PUONE_DEVICE Part(const Factor& factor, bool along_depth) : factor_(factor) {
      const int t = static_cast<int>(threadIdx.x);
      row_ = along_depth ? t / kDepth : t % kLength;
      k_ = along_depth ? t % kDepth : t / kLength;
      row_step_ = along_depth ? kThreads / kDepth : 0;
      k_step_ = along_depth ? 0 : kThreads / kLength;
    }

    PUONE_DEVICE void fetch(int64_t image, int64_t row, int64_t rows, int64_t k, int64_t end) {
      factor_.fetch(pieceAt(image, row + row_, rows, k + k_, end, row_step_, k_step_), elements_);
    }

    PUONE_DEVICE void store(Panel<kLength>& panel) const {
      PUONE_UNROLL
      for (int e = 0; e < kCount; ++e) panel[k_ + e * k_step_][row_ + e * row_step_] = elements_[e];
    }

   private:
    static constexpr int kCount = kLength * kDepth / kThreads;
    static_assert(kThreads % kLength == 0 && kThreads % kDepth == 0 && kCount > 0);

    const Factor& factor_;
    int row_, k_, row_step_, k_step_;
    T elements_[kCount];
  };

  class Sums {
   public:
    PUONE_DEVICE Sums()
        : down_(static_cast<int>(threadIdx.x) / kThreadsAcross),
          across_(static_cast<int>(threadIdx.x) % kThreadsAcross) {}

    PUONE_DEVICE void add(
        const Panel<kRows>& left,
        bool /*along_depth*/,
        const Panel<kColumns>& right,
        bool /*along_depth*/) {
      constexpr int kUnrolled = 4; // more costs compile time and registers
      static_assert(kDepth % kUnrolled == 0);
      PUONE_ROLLED
      for (int first = 0; first < kDepth; first += kUnrolled) {
        PUONE_UNROLL
        for (int k = 0; k < kUnrolled; ++k) {
          T of_left[kThreadRows], of_right[kThreadColumns];
          read<kThreadsDown>(left[first + k], down_, of_left);
          read<kThreadsAcross>(right[first + k], across_, of_right);
          PUONE_UNROLL
          for (int i = 0; i < kThreadRows; ++i) {
            PUONE_UNROLL
            for (int j = 0; j < kThreadColumns; ++j) {
              sums_[i][j] = plus(sums_[i][j], times(of_left[i], of_right[j]));
            }
          }
        }
      }
    }

    PUONE_DEVICE void stage(T (&rows)[kStageRows][kStagePitch], int i) const {
      PUONE_UNROLL
      for (int j = 0; j < kThreadColumns; ++j) {
        rows[down_][indexInTile<kThreadsAcross>(across_, j)] = sums_[i][j];
      }
    }
    PUONE_DEVICE static int row(int staged, int i) {
      return indexInTile<kThreadsDown>(staged, i);
    }

   private:
    /// The index in a tile of a thread's i-th row (or column): neighbouring threads read
    /// neighbouring vectors.
    template <int kOfThreads>
    PUONE_DEVICE static int indexInTile(int thread, int i) {
      return i / kWidth * kOfThreads * kWidth + thread * kWidth + i % kWidth;
    }

    template <int kOfThreads, int kLength>
    PUONE_DEVICE static void read(const T* panel, int thread, T (&out)[kLength]) {
      PUONE_UNROLL
      for (int i = 0; i < kLength; i += kWidth) {
        const T* from = panel + indexInTile<kOfThreads>(thread, i);
        const auto vector = *reinterpret_cast<const Vector*>(from);
        PUONE_UNROLL
        for (int j = 0; j < kWidth; ++j) out[i + j] = vector.values[j];
      }
    }

    int down_, across_;
    T sums_[kThreadRows][kThreadColumns] = {};
  };
};

/// Results with more rows than this use wide tiles.
constexpr int64_t kFlatRows = 32;

/// Calls body(Tile()) with the type of the tiles for results of `rows` rows.
template <class T, class Body>
void withScalarTile(int64_t rows, const Body& body) {
  if constexpr (!std::is_same_v<T, float>) {
    body(ScalarTile<T, 64, 64, sizeof(T) == 16 ? 8 : 16, 4, 4>());
  } else if (rows <= kFlatRows) {
    body(ScalarTile<float, 32, 128, 16, 4, 4>());
  } else {
    body(ScalarTile<float, 128, 128, 16, 8, 8>());
  }
}

} // namespace puone::kernels::PUONE_ISA
