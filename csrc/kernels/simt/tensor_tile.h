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
template <class E, bool kCopied_, int kRows_, int kColumns_, int kDown, int kAcross>
struct TensorTile {
  using Sum = float;
  static constexpr bool kCopied = kCopied_;
  static constexpr int kBuffers = kCopied && sizeof(E) == 2 ? 3 : 2;
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

  /// Where the elements of kCount lines of kWidth are.
  template <int kCount, int kWidth, int kPadding>
  struct Lines {
    static constexpr bool kPadded = kBuffers == 2;
    static constexpr int kRuns = kWidth / kRun, kPitch = kRuns + (kPadded ? kPadding : 0);
    static constexpr int kBytes = 16 * kCount * kPitch;
    static_assert(kPadded || (kSize == 2 && (kRuns == 4 || kRuns % 8 == 0))); // 8 fill the banks

    PUONE_DEVICE static int offset(int line, int element) {
      if constexpr (kPadded) return kSize * (line * kPitch * kRun + element);
      const int moved = kRuns == 4 ? line / 2 % 4 : line % 8;
      return 16 * (line * kPitch + (element / kRun ^ moved)) + kSize * (element % kRun);
    }
  };

  /// A factor's part of a step, its runs either along the depth or along the rows. What threads
  /// read or write at once is in different banks: lines are padded, or, to have room for three
  /// steps, runs change places within a line.
  template <int kLength>
  class Panel {
    using Along = Lines<kLength, kDepth, 1>;
    using Across = Lines<kDepth, kLength, 8 / kRun>;

   public:
    PUONE_DEVICE static int offset(bool along_depth, int row, int k) {
      return along_depth ? Along::offset(row, k) : Across::offset(k, row);
    }

    alignas(
        16) unsigned char bytes[Along::kBytes > Across::kBytes ? Along::kBytes : Across::kBytes];
  };
  struct Shared {
    Panel<kRows> left[kBuffers];
    Panel<kColumns> right[kBuffers];
  };

  /// Runs of a factor that has vectors are along its dense dimension. Of others, whose elements are
  /// gathered, neighbouring threads take neighbours in that dimension, so that runs are along the
  /// other.
  template <class Factor>
  static bool isAlongDepth(const Factor& factor) {
    return factor.isAlongDepth() == Factor::kHasVectors;
  }

  /// Where a thread's i-th run of a factor's part of a step begins.
  struct Place {
    int row, k;
  };
  template <class Factor, int kLength>
  PUONE_DEVICE static Place place(bool along_depth, int i) {
    const int t = static_cast<int>(threadIdx.x) + i * kThreads;
    constexpr int kOfRow = kDepth / kRun, kOfDepth = kLength / kRun;
    if constexpr (Factor::kHasVectors) {
      if (along_depth) return {t / kOfRow, t % kOfRow * kRun};
      return {t % kOfDepth * kRun, t / kOfDepth};
    } else {
      if (along_depth) return {t % kLength, t / kLength * kRun};
      return {t / kDepth * kRun, t % kDepth};
    }
  }
  template <int kLength>
  static constexpr int kRunsOf = kLength * kDepth / kRun / kThreads;

  template <class Factor, int kLength>
  class Copier {
   public:
    PUONE_DEVICE Copier(const Factor& factor, bool along_depth)
        : factor_(factor), along_depth_(along_depth) {}

    PUONE_DEVICE void start(
        Panel<kLength>& panel, int64_t image, int64_t row, int64_t rows, int64_t k, int64_t end)
        const {
      static_assert(Factor::kSize == kSize);
      PUONE_UNROLL
      for (int i = 0; i < kRunsOf<kLength>; ++i) {
        const Place at = place<Factor, kLength>(along_depth_, i);
        const int32_t along_rows = along_depth_ ? 0 : 1, along_k = along_depth_ ? 1 : 0;
        const Piece piece = pieceAt(image, row + at.row, rows, k + at.k, end, along_rows, along_k);
        dialect::startCopy(
            panel.bytes + panel.offset(along_depth_, at.row, at.k),
            factor_.at(piece),
            Factor::bytes(piece));
      }
    }

   private:
    const Factor& factor_;
    bool along_depth_;
  };

  template <class Factor, int kLength>
  class Part {
   public:
    PUONE_DEVICE Part(const Factor& factor, bool along_depth)
        : factor_(factor), along_depth_(along_depth) {}

    PUONE_DEVICE void fetch(int64_t image, int64_t row, int64_t rows, int64_t k, int64_t end) {
      PUONE_UNROLL
      for (int i = 0; i < kRuns; ++i) {
        const Place at = place<Factor, kLength>(along_depth_, i);
        const int32_t along_rows = along_depth_ ? 0 : 1, along_k = along_depth_ ? 1 : 0;
        runs_[i] = run(pieceAt(image, row + at.row, rows, k + at.k, end, along_rows, along_k));
      }
    }

    PUONE_DEVICE void store(Panel<kLength>& panel) const {
      PUONE_UNROLL
      for (int i = 0; i < kRuns; ++i) {
        const Place at = place<Factor, kLength>(along_depth_, i);
        kernels::PUONE_ISA::store(panel.bytes + panel.offset(along_depth_, at.row, at.k), runs_[i]);
      }
    }

   private:
    static constexpr int kRuns = kRunsOf<kLength>;
    static_assert(kRuns > 0);

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
      if constexpr (kCopied && kSize == 4) { // nothing has rounded them
        PUONE_UNROLL
        for (uint32_t& word : out) word = dialect::toTf32(std::bit_cast<float>(word));
      }
    }

    float sums_[kWarpRows / 16][kWarpColumns / 8][4] = {};
  };
};

/// Calls body(Tile()) with the type of the tiles for results of `rows` rows and elements of type E:
/// Half, BFloat16 or, to be rounded to TF32, float. kCopied: both factors are AlignedFactor.
template <class E, bool kCopied, class Body>
void withTensorTile(int64_t rows, const Body& body) {
  if (rows <= kFlatRows) {
    body(TensorTile<E, kCopied, 32, 128, 1, 4>());
  } else {
    body(TensorTile<E, kCopied, 128, 128, 2, 4>());
  }
}

/// Calls body(Tile()) with the type of the tiles that multiply elements of type E without rounding.
template <class E, class Body>
void withTile(int64_t rows, const Body& body) {
  if constexpr (kIsStorageFloat<E>) {
    withTensorTile<E, false>(rows, body);
  } else {
    withScalarTile<ComputeValue<E>>(rows, body);
  }
}

} // namespace puone::kernels::PUONE_ISA
