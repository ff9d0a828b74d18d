// SPDX-License-Identifier: BSD-3-Clause
// Tiles for gemm.h on tensor cores: a warp multiplies matrices of 16 x 32 bytes and 32 bytes x 8
// (kernels/simt/tensor.h). Elements of 16 bits are multiplied as they are, floats are rounded to
// TF32; sums are floats.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "kernels/compute.h"
#include "kernels/simt/gemm.h"
#include "kernels/simt/scalar_tile.h"
#include "kernels/simt/tensor.h"
#include "kernels/target.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {

template <class E>
inline constexpr dialect::TensorType kTensorType =
    std::is_same_v<E, Half>       ? dialect::TensorType::kFloat16
    : std::is_same_v<E, BFloat16> ? dialect::TensorType::kBFloat16
                                  : dialect::TensorType::kTf32;

/// A block's tile; its warps share it out as kDown x kAcross.
template <class E, int kRows_, int kColumns_, int kDown, int kAcross>
struct TensorTile {
  using Sum = float;
  static constexpr int kRows = kRows_;
  static constexpr int kColumns = kColumns_;
  static constexpr int kSize = sizeof(E);
  static constexpr int kRun = 16 / kSize; // elements that are moved at once
  static constexpr int kStep = 2 * kRun;  // the depth of a warp's matrices
  static constexpr int kDepth = 2 * kStep;
  static constexpr int kThreads = 32 * kDown * kAcross;
  static constexpr int kBlocks = 2;
  static constexpr int kGatheringBlocks = 1; // it takes more registers than two blocks leave
  static constexpr int kWarpRows = kRows / kDown;
  static constexpr int kWarpColumns = kColumns / kAcross;
  static_assert(kWarpRows % 16 == 0 && kWarpColumns % 16 == 0);
  static constexpr int kStages = kWarpRows / 16;
  static constexpr int kStageRows = 16 * kDown;
  static constexpr int kStagePitch = kColumns + 8; // rows of a warp's matrix are in other banks

  /// 16 bytes of elements.
  struct alignas(16) Run {
    uint32_t words[4];
  };

  /// A factor's part of a step, its runs either along the depth or along the rows. The pitches put
  /// what a warp reads at once into different banks.
  template <int kLength>
  struct Panel {
    static constexpr int kPitchAlong = kDepth + kRun, kPitchAcross = kLength + 8;
    static constexpr int kElements = kLength * kPitchAlong > kDepth* kPitchAcross
                                         ? kLength * kPitchAlong
                                         : kDepth * kPitchAcross;
    alignas(16) unsigned char bytes[kElements * kSize];

    PUONE_DEVICE static int offset(bool along_depth, int row, int k) {
      return kSize * (along_depth ? row * kPitchAlong + k : k * kPitchAcross + row);
    }
  };
  struct Shared {
    Panel<kRows> left[2];
    Panel<kColumns> right[2];
  };

  /// Runs of a factor that has vectors are along its dense dimension. Of others, whose elements are
  /// gathered, neighbouring threads take neighbours in that dimension, so that runs are along the
  /// other.
  template <class Factor>
  static bool isAlongDepth(const Factor& factor) {
    return factor.isAlongDepth() == Factor::kHasVectors;
  }

  template <class Factor, int kLength>
  class Part {
   public:
    PUONE_DEVICE Part(const Factor& factor, bool along_depth)
        : factor_(factor), along_depth_(along_depth) {}

    PUONE_DEVICE void fetch(int64_t image, int64_t row, int64_t rows, int64_t k, int64_t end) {
      PUONE_UNROLL
      for (int i = 0; i < kRuns; ++i) {
        const Place at = place(i);
        const int32_t along_rows = along_depth_ ? 0 : 1, along_k = along_depth_ ? 1 : 0;
        runs_[i] = run(pieceAt(image, row + at.row, rows, k + at.k, end, along_rows, along_k));
      }
    }

    PUONE_DEVICE void store(Panel<kLength>& panel) const {
      PUONE_UNROLL
      for (int i = 0; i < kRuns; ++i) {
        const Place at = place(i);
        kernels::PUONE_ISA::store(panel.bytes + panel.offset(along_depth_, at.row, at.k), runs_[i]);
      }
    }

   private:
    static constexpr int kRuns = kLength * kDepth / kRun / kThreads;
    static_assert(kRuns > 0);
    struct Place {
      int row, k;
    };

    /// Where this thread's i-th run begins.
    PUONE_DEVICE Place place(int i) const {
      const int t = static_cast<int>(threadIdx.x) + i * kThreads;
      constexpr int kOfRow = kDepth / kRun, kOfDepth = kLength / kRun;
      if constexpr (Factor::kHasVectors) {
        if (along_depth_) return {t / kOfRow, t % kOfRow * kRun};
        return {t % kOfDepth * kRun, t / kOfDepth};
      } else {
        if (along_depth_) return {t % kLength, t / kLength * kRun};
        return {t / kDepth * kRun, t % kDepth};
      }
    }

    PUONE_DEVICE Run run(const Piece& piece) const {
      Run result;
      if constexpr (Factor::kHasVectors) {
        if (const unsigned char* from = factor_.vector(piece, kSize)) {
          result = load<Run>(from);
          if constexpr (kSize == 4) {
            PUONE_UNROLL
            for (uint32_t& word : result.words) word = dialect::toTf32(std::bit_cast<float>(word));
          }
          return result;
        }
      }
      float values[kRun];
      factor_.fetch(piece, values);
      PUONE_UNROLL
      for (int i = 0; i < 4; ++i) result.words[i] = word(values, i);
      return result;
    }

    PUONE_DEVICE static uint32_t word(const float (&values)[kRun], int i) {
      if constexpr (kSize == 4) {
        return dialect::toTf32(values[i]);
      } else {
        const auto bits = [&](int j) { return uint32_t{fromFloat<E>(values[j]).bits}; };
        return bits(2 * i) | bits(2 * i + 1) << 16;
      }
    }

    const Factor& factor_;
    bool along_depth_;
    Run runs_[kRuns];
  };

  class Sums {
   public:
    PUONE_DEVICE void add(
        const Panel<kRows>& left,
        bool left_along_depth,
        const Panel<kColumns>& right,
        bool right_along_depth) {
      const int row = warp() / kAcross * kWarpRows, column = warp() % kAcross * kWarpColumns;
      PUONE_UNROLL
      for (int k = 0; k < kDepth; k += kStep) {
        uint32_t a[kWarpRows / 16][4];
        PUONE_UNROLL
        for (int i = 0; i < kWarpRows / 16; ++i) {
          read(left, left_along_depth, row + 16 * i, k, a[i]);
        }
        PUONE_UNROLL
        for (int j = 0; j < kWarpColumns / 16; ++j) {
          uint32_t b[4]; // of two matrices, rows first
          read(right, right_along_depth, column + 16 * j, k, b);
          PUONE_UNROLL
          for (int i = 0; i < kWarpRows / 16; ++i) {
            dialect::multiplyAdd<kTensorType<E>>(sums_[i][2 * j], a[i], {b[0], b[2]});
            dialect::multiplyAdd<kTensorType<E>>(sums_[i][2 * j + 1], a[i], {b[1], b[3]});
          }
        }
      }
    }

    PUONE_DEVICE void stage(float (&rows)[kStageRows][kStagePitch], int i) const {
      const int row = warp() / kAcross * 16 + lane() / 4;
      const int column = warp() % kAcross * kWarpColumns + lane() % 4 * 2;
      PUONE_UNROLL
      for (int j = 0; j < kWarpColumns / 8; ++j) {
        PUONE_UNROLL
        for (int e = 0; e < 4; ++e) {
          rows[row + e / 2 * 8][column + 8 * j + e % 2] = sums_[i][j][e];
        }
      }
    }
    PUONE_DEVICE static int row(int staged, int i) {
      return staged / 16 * kWarpRows + 16 * i + staged % 16;
    }

   private:
    PUONE_DEVICE static int warp() {
      return static_cast<int>(threadIdx.x) / 32;
    }
    PUONE_DEVICE static int lane() {
      return static_cast<int>(threadIdx.x) % 32;
    }

    /// The words of this lane of 16 rows x kStep: of rows 0 to 7 and 8 to 15 of the first half of
    /// the depth, then of the second.
    template <int kLength>
    PUONE_DEVICE static void read(
        const Panel<kLength>& panel, bool along_depth, int row, int k, uint32_t (&out)[4]) {
      const auto at = [&](int r, int d) {
        return panel.bytes + panel.offset(along_depth, row + r, k + d);
      };
      const int l = lane();
      if (along_depth) {
        dialect::loadMatrices<false>(out, at(l % 16, l / 16 * kRun));
      } else if constexpr (kSize == 2) {
        dialect::loadMatrices<true>(out, at(l / 8 % 2 * 8, l / 16 * 8 + l % 8));
      } else {
        PUONE_UNROLL
        for (int i = 0; i < 4; ++i)
          out[i] = load<uint32_t>(at(l / 4 + i % 2 * 8, l % 4 + i / 2 * 4));
      }
    }

    float sums_[kWarpRows / 16][kWarpColumns / 8][4] = {};
  };
};

/// Calls body(Tile()) with the type of the tiles for results of `rows` rows and elements of type E:
/// Half, BFloat16 or, to be rounded to TF32, float.
template <class E, class Body>
void withTensorTile(int64_t rows, const Body& body) {
  if (rows <= kFlatRows) {
    body(TensorTile<E, 32, 128, 1, 4>());
  } else {
    body(TensorTile<E, 128, 128, 2, 4>());
  }
}

/// Calls body(Tile()) with the type of the tiles that multiply elements of type E without rounding.
template <class E, class Body>
void withTile(int64_t rows, const Body& body) {
  if constexpr (kIsStorageFloat<E>) {
    withTensorTile<E>(rows, body);
  } else {
    withScalarTile<ComputeValue<E>>(rows, body);
  }
}

} // namespace puone::kernels::PUONE_ISA
