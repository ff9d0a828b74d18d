// SPDX-License-Identifier: BSD-3-Clause
#include <array>

#include "kernels/host/gemm.h"

namespace puone::kernels::PUONE_ISA {
namespace {

/// The innermost loop: kRows x kVectors vectors of the result, in registers.
template <class T>
struct Step {
  const T* left;
  int64_t left_row; // elements between rows, where they are not packed
  int64_t left_depth;
  const T* right;
  int64_t right_depth;
  int64_t depth;
  T* out;
  int64_t pitch;
  int columns; // used columns of the vectors
  bool add;
};

template <class T, int kRows, int kVectors, bool kPacked>
void accumulate(const Step<T>& step) {
  using Vector = typename Gemm<T>::Vector;
  using Unaligned = typename Gemm<T>::UnalignedVector;
  constexpr int kLanes = Gemm<T>::kLanes;
  constexpr int kWidth = kVectors * kLanes;
  Vector sums[kRows][kVectors] = {};
  const T* left = step.left;
  const T* right = step.right;
  const int64_t left_row = kPacked ? 1 : step.left_row;
  for (int64_t p = 0; p < step.depth; ++p) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        sums[i][v] += left[i * left_row] * *reinterpret_cast<const Unaligned*>(right + v * kLanes);
      }
    }
    left += step.left_depth;
    right += step.right_depth;
  }
  // With fewer columns than the vectors have, the result goes through a buffer.
  T buffer[kRows * kWidth];
  const bool whole = step.columns == kWidth;
  T* out = whole ? step.out : buffer;
  const int64_t pitch = whole ? step.pitch : kWidth;
  const bool add = whole && step.add;
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      auto& to = *reinterpret_cast<Unaligned*>(out + i * pitch + v * kLanes);
      to = add ? to + sums[i][v] : sums[i][v];
    }
  }
  if (whole) return;
  for (int i = 0; i < kRows; ++i) {
    const T* from = buffer + i * kWidth;
    T* to = step.out + i * step.pitch;
    for (int j = 0; j < step.columns; ++j) to[j] = step.add ? to[j] + from[j] : from[j];
  }
}

/// Rows per step: as many as fit the registers, then fewer for the rest.
constexpr std::array<int, 3> kRowSteps{kPanelRows, kPanelRows / 3, 1};

constexpr int rowStep(int64_t rows) {
  return rows >= kRowSteps[0] ? 0 : rows >= kRowSteps[1] ? 1 : 2;
}

template <class T>
using StepFunction = void (*)(const Step<T>&);

/// Indices: row step, number of vectors - 1, whether the left factor is packed.
template <class T>
constexpr StepFunction<T> kSteps[3][2][2] = {
    {{accumulate<T, kRowSteps[0], 1, false>, accumulate<T, kRowSteps[0], 1, true>},
     {accumulate<T, kRowSteps[0], 2, false>, accumulate<T, kRowSteps[0], 2, true>}},
    {{accumulate<T, kRowSteps[1], 1, false>, accumulate<T, kRowSteps[1], 1, true>},
     {accumulate<T, kRowSteps[1], 2, false>, accumulate<T, kRowSteps[1], 2, true>}},
    {{accumulate<T, kRowSteps[2], 1, false>, accumulate<T, kRowSteps[2], 1, true>},
     {accumulate<T, kRowSteps[2], 2, false>, accumulate<T, kRowSteps[2], 2, true>}},
};

/// A thin result of two factors that are both dense along the depth: vectors run along the depth,
/// and nothing is packed.
template <class T>
struct Dots {
  const T* left;
  int64_t left_row;
  const T* right;
  int64_t right_row;
  int64_t depth;
};

template <class T, int kRows, int kColumns>
void multiplyAlongDepth(const Dots<T>& dots, T* out, int64_t pitch, bool add) {
  using Vector = typename Gemm<T>::Vector;
  using Unaligned = typename Gemm<T>::UnalignedVector;
  constexpr int kLanes = Gemm<T>::kLanes;
  Vector sums[kRows][kColumns] = {};
  int64_t p = 0;
  for (; p + kLanes <= dots.depth; p += kLanes) {
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      const Vector row = *reinterpret_cast<const Unaligned*>(dots.left + i * dots.left_row + p);
#pragma GCC unroll 4
      for (int j = 0; j < kColumns; ++j) {
        sums[i][j] +=
            row * *reinterpret_cast<const Unaligned*>(dots.right + j * dots.right_row + p);
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kColumns; ++j) {
      T sum = add ? out[i * pitch + j] : T(0);
      for (int lane = 0; lane < kLanes; ++lane) sum += sums[i][j][lane];
      for (int64_t q = p; q < dots.depth; ++q) {
        sum += dots.left[i * dots.left_row + q] * dots.right[j * dots.right_row + q];
      }
      out[i * pitch + j] = sum;
    }
  }
}

template <class T>
using DotsFunction = void (*)(const Dots<T>&, T*, int64_t, bool);

/// Indices: 4 rows or 1 at a time; 4, 2 or 1 columns at a time.
template <class T>
constexpr DotsFunction<T> kDots[2][3] = {
    {multiplyAlongDepth<T, 4, 4>, multiplyAlongDepth<T, 4, 2>, multiplyAlongDepth<T, 4, 1>},
    {multiplyAlongDepth<T, 1, 4>, multiplyAlongDepth<T, 1, 2>, multiplyAlongDepth<T, 1, 1>},
};

/// Results with more columns than this are faster with packing.
constexpr int64_t kThinColumns = 16;

template <class T>
void multiplyThin(
    Dots<T> dots, const typename Gemm<T>::Tile& tile, T* out, int64_t pitch, bool add) {
  const T* left = dots.left;
  const T* right = dots.right;
  for (int64_t i = 0; i < tile.rows;) {
    const int few_rows = tile.rows - i < 4;
    dots.left = left + i * dots.left_row;
    for (int64_t j = 0; j < tile.columns;) {
      const int64_t rest = tile.columns - j;
      const int few_columns = rest >= 4 && kPanelRows > 6 ? 0 : rest >= 2 ? 1 : 2;
      dots.right = right + j * dots.right_row;
      kDots<T>[few_rows][few_columns](dots, out + i* pitch + j, pitch, add);
      j += 4 >> few_columns;
    }
    i += few_rows ? 1 : 4;
  }
}

/// Packing is worth it for a factor that is read more often than this.
constexpr int64_t kReadsInPlace = 4;

} // namespace

template <class T>
void Gemm<T>::multiply(
    const Factor& left,
    const Factor& right,
    const Tile& tile,
    int64_t k,
    T* out,
    int64_t pitch,
    bool add,
    Scratch& scratch) {
  if (tile.columns <= kThinColumns && left.in_place != nullptr && left.depth_step == 1 &&
      right.in_place != nullptr && right.depth_step == 1) {
    const Dots<T> dots{
        left.in_place + tile.row * left.row_step,
        left.row_step,
        right.in_place + tile.column * right.row_step,
        right.row_step,
        k};
    multiplyThin(dots, tile, out, pitch, add);
    return;
  }
  const int64_t panels = (tile.columns + kPanelColumns - 1) / kPanelColumns;
  const bool pack_left = left.in_place == nullptr || panels > kReadsInPlace;
  const bool pack_right =
      right.in_place == nullptr || right.row_step != 1 || tile.rows > kReadsInPlace * kPanelRows;
  for (int64_t k0 = 0; k0 < k; k0 += kDepth) {
    const int64_t depth = std::min(kDepth, k - k0);
    if (pack_left) {
      for (int64_t i = 0; i < tile.rows;) {
        const int rows = kRowSteps[rowStep(tile.rows - i)];
        left.pack(scratch.left + i * depth, tile.row + i, rows, rows, k0, depth);
        i += rows;
      }
    }
    for (int64_t j = 0; j < tile.columns; j += kPanelColumns) {
      const int columns = static_cast<int>(std::min<int64_t>(kPanelColumns, tile.columns - j));
      const int vectors = columns > kLanes ? 2 : 1;
      Step<T> step;
      step.depth = depth;
      step.pitch = pitch;
      step.columns = columns;
      step.add = add || k0 > 0;
      if (pack_right || columns != vectors * kLanes) {
        step.right = scratch.right;
        step.right_depth = vectors * kLanes;
        right.pack(scratch.right, tile.column + j, columns, vectors * kLanes, k0, depth);
      } else {
        step.right = right.in_place + (tile.column + j) + k0 * right.depth_step;
        step.right_depth = right.depth_step;
      }
      for (int64_t i = 0; i < tile.rows;) {
        const int row_step = rowStep(tile.rows - i);
        const int rows = kRowSteps[row_step];
        if (pack_left) {
          step.left = scratch.left + i * depth;
          step.left_depth = rows;
        } else {
          step.left = left.in_place + (tile.row + i) * left.row_step + k0 * left.depth_step;
          step.left_row = left.row_step;
          step.left_depth = left.depth_step;
        }
        step.out = out + i * pitch + j;
        kSteps<T>[row_step][vectors - 1][pack_left](step);
        i += rows;
      }
    }
  }
  if (k == 0 && !add) {
    for (int64_t i = 0; i < tile.rows; ++i) std::fill_n(out + i * pitch, tile.columns, T(0));
  }
}

template <class T>
void Gemm<T>::multiplyInPlace(
    const InPlace& factors,
    int64_t rows,
    int64_t columns,
    int64_t depth,
    T* out,
    int64_t pitch,
    bool add) {
  Step<T> step;
  step.left_row = factors.left_row;
  step.left_depth = factors.left_depth;
  step.right_depth = factors.right_depth;
  step.depth = depth;
  step.pitch = pitch;
  step.add = add;
  const bool dense = factors.left_row == 1; // as a packed factor is
  for (int64_t j = 0; j < columns; j += kPanelColumns) {
    step.columns = static_cast<int>(std::min<int64_t>(kPanelColumns, columns - j));
    const int vectors = step.columns > kLanes ? 2 : 1;
    step.right = factors.right + j;
    for (int64_t i = 0; i < rows;) {
      const int row_step = rowStep(rows - i);
      step.left = factors.left + i * factors.left_row;
      step.out = out + i * pitch + j;
      kSteps<T>[row_step][vectors - 1][dense](step);
      i += kRowSteps[row_step];
    }
  }
}

template struct Gemm<float>;
template struct Gemm<double>;
template struct Gemm<uint32_t>;
template struct Gemm<uint64_t>;

} // namespace puone::kernels::PUONE_ISA
