// SPDX-License-Identifier: BSD-3-Clause
// Elements found by indices on a host, row by row. One core performs all writes that can have the
// same destination.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>

#include "kernels/args/indexing.h"
#include "kernels/bits.h"
#include "kernels/index_check.h"
#include "kernels/indexing.h"
#include "kernels/strided.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {
namespace indexed {

/// Number of offsets that are computed at a time.
constexpr int64_t kPiece = 256;

/// The dimension that a single int64 index chooses from.
struct Dimension {
  int64_t size;
  int64_t stride; // bytes
  int64_t wrap;   // added to negative indices
};

/// The operation between elements of the table and their counterparts: `row` for a row whose
/// elements have the same index, `each` for elements with an offset each, and `indexed` for the
/// most frequent case, one int64 index per element. Strides and offsets are in bytes.
struct ElementOperation {
  void (*row)(unsigned char* table, int64_t, unsigned char* elements, int64_t, int64_t n);
  void (*each)(
      unsigned char* table,
      int64_t,
      const int64_t* offsets,
      unsigned char* elements,
      int64_t,
      int64_t n);
  /// Returns false if an index was out of bounds; such elements are skipped.
  bool (*indexed)(
      unsigned char* table,
      int64_t,
      const unsigned char* index,
      int64_t,
      const Dimension&,
      unsigned char* elements,
      int64_t,
      int64_t n);
};

template <class T, class F>
constexpr ElementOperation elementOperation() {
  return {
      [](unsigned char* table, int64_t stride, unsigned char* elements, int64_t step, int64_t n) {
        constexpr int64_t kSize = sizeof(T);
        if (stride == kSize && step == kSize) {
#pragma GCC ivdep
          for (int64_t i = 0; i < n; ++i) F::apply(table + i * kSize, elements + i * kSize);
        } else {
          for (int64_t i = 0; i < n; ++i) F::apply(table + i * stride, elements + i * step);
        }
      },
      [](unsigned char* table,
         int64_t stride,
         const int64_t* offsets,
         unsigned char* elements,
         int64_t step,
         int64_t n) {
        for (int64_t i = 0; i < n; ++i) {
          F::apply(table + i * stride + offsets[i], elements + i * step);
        }
      },
      [](unsigned char* table,
         int64_t stride,
         const unsigned char* index,
         int64_t index_stride,
         const Dimension& dimension,
         unsigned char* elements,
         int64_t step,
         int64_t n) {
        const Dimension d = dimension;
        bool valid = true;
        for (int64_t i = 0; i < n; ++i) {
          const int64_t given = load<int64_t>(index + i * index_stride);
          const int64_t k = given < 0 ? given + d.wrap : given;
          if (static_cast<uint64_t>(k) < static_cast<uint64_t>(d.size)) {
            F::apply(table + i * stride + k * d.stride, elements + i * step);
          } else {
            valid = false;
          }
        }
        return valid;
      }};
}

template <class T>
ElementOperation reductionOf(int32_t reduction) {
  switch (reduction) {
    case PUONE_REDUCE_SUM:
      return elementOperation<T, Reduce<T, Sum>>();
    case PUONE_REDUCE_PRODUCT:
      return elementOperation<T, Reduce<T, Product>>();
    default:
      break;
  }
  if constexpr (!kIsComplex<T>) {
    switch (reduction) {
      case PUONE_REDUCE_MINIMUM:
        return elementOperation<T, Reduce<T, Minimum>>();
      case PUONE_REDUCE_MAXIMUM:
        return elementOperation<T, Reduce<T, Maximum>>();
      default:
        break;
    }
  }
  throw std::invalid_argument("no such reduction in this dtype");
}

template <class... T>
ElementOperation reductionOf(const puone_indexing_args& args) {
  ElementOperation result{};
  const bool found =
      ((args.dtype == kDtype<T> && (result = reductionOf<T>(args.reduction), true)) || ...);
  if (!found) throw std::invalid_argument("the kernel does not reduce in this dtype");
  return result;
}

/// A table, its elements and up to kIndices indices into it.
template <int kIndices>
class Indexing {
 public:
  Indexing(Launch& launch, const puone_indexing_args& args)
      : args_(args), check_(launch, args.name) {
    std::array<const puone_operand*, kOperands> operands;
    operands[0] = &args.table;
    operands[1] = args.immediate != 0 ? &args.table : &args.elements;
    for (int k = 0; k < kIndices; ++k) {
      operands[kFirst + k] = k < args.index_count ? &args.index[k] : &args.table;
    }
    nest_ = loopNest<kOperands>(launch, args.ndim, args.sizes, operands);
    if (args.immediate != 0) {
      nest_.data[1] = const_cast<unsigned char*>(args.value);
      nest_.strides[1] = {};
    }
    for (int k = 0; k < args.index_count; ++k) one_index_per_row_ &= nest_.stride(kFirst + k) == 0;
  }

  void inAnyOrder(Launch& launch, const ElementOperation& operation) {
    forRows(launch, nest_, [&](const auto& data, int64_t n) { run(operation, data, n); });
  }

  void inOrder(Launch& launch, const ElementOperation& operation) {
    forRowsInOrder(launch, nest_, 0, [&](const auto& data, int64_t n) { run(operation, data, n); });
  }

 private:
  static constexpr int kFirst = 2; // the operand of the first index
  static constexpr int kOperands = kFirst + kIndices;
  using Addresses = std::array<unsigned char*, kOperands>;

  void run(const ElementOperation& operation, Addresses data, int64_t n) {
    std::array<int64_t, kPiece> offsets;
    if (one_index_per_row_) {
      if (!findOffsets(data, offsets.data(), 1)) return;
      operation.row(data[0] + offsets[0], nest_.stride(0), data[1], nest_.stride(1), n);
      return;
    }
    if (kIndices == 1 && args_.index_dtype == PUONE_INT64) {
      const Dimension dimension{args_.index_sizes[0], args_.index_strides[0], wrap(0)};
      const unsigned char* index = data[kFirst];
      const int64_t step = nest_.stride(kFirst);
      if (!operation.indexed(
              data[0], nest_.stride(0), index, step, dimension, data[1], nest_.stride(1), n)) {
        report<int64_t>(index, step, dimension.size, dimension.wrap, n);
      }
      return;
    }
    for (int64_t left = n, m = 0; left > 0; left -= m) {
      m = std::min(left, kPiece);
      if (findOffsets(data, offsets.data(), m)) {
        operation.each(data[0], nest_.stride(0), offsets.data(), data[1], nest_.stride(1), m);
      }
      for (int o = 0; o < kOperands; ++o) data[o] += m * nest_.stride(o);
    }
  }

  int64_t wrap(int k) const {
    return args_.wraps != 0 ? args_.index_sizes[k] : 0;
  }

  /// Returns false if an index is out of bounds.
  bool findOffsets(const Addresses& data, int64_t* offsets, int64_t n) {
    std::fill_n(offsets, n, 0);
    bool valid = true;
    const int count = kIndices == 1 ? 1 : args_.index_count;
    for (int k = 0; k < count; ++k) {
      valid &= args_.index_dtype == PUONE_INT64 ? addOffsets<int64_t>(k, data, offsets, n)
                                                : addOffsets<int32_t>(k, data, offsets, n);
    }
    return valid;
  }

  template <class Index>
  bool addOffsets(int k, const Addresses& data, int64_t* offsets, int64_t n) {
    const unsigned char* in = data[kFirst + k];
    const int64_t in_stride = nest_.stride(kFirst + k);
    const int64_t size = args_.index_sizes[k];
    const int64_t stride = args_.index_strides[k];
    const int64_t wrapped = wrap(k);
    bool valid = true;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t given = load<Index>(in + i * in_stride);
      const int64_t index = given < 0 ? given + wrapped : given;
      valid &= static_cast<uint64_t>(index) < static_cast<uint64_t>(size);
      offsets[i] += index * stride;
    }
    if (!valid) report<Index>(in, in_stride, size, wrapped, n);
    return valid;
  }

  template <class Index>
  void report(const unsigned char* in, int64_t in_stride, int64_t size, int64_t wrap, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t given = load<Index>(in + i * in_stride);
      const int64_t low = -wrap;
      if (given < low || given >= size) check_(given, size);
    }
  }

  const puone_indexing_args& args_;
  LoopNest<kOperands> nest_;
  bool one_index_per_row_ = true; // the elements of a row share their indices
  const IndexCheck check_;
};

template <class F>
void withIndexing(Launch& launch, const puone_indexing_args& args, const F& f) {
  if (args.index_count == 1) {
    f(Indexing<1>(launch, args));
  } else {
    f(Indexing<PUONE_MAX_INDICES>(launch, args));
  }
}

} // namespace indexed

inline void indexGet(Launch& launch, const puone_indexing_args& args) {
  using namespace indexed;
  const ElementOperation get =
      withBits(args.element_size, []<class T>(T) { return elementOperation<T, Get<T>>(); });
  withIndexing(launch, args, [&](auto&& indexing) { indexing.inAnyOrder(launch, get); });
}

inline void indexPut(Launch& launch, const puone_indexing_args& args) {
  using namespace indexed;
  const ElementOperation put =
      withBits(args.element_size, []<class T>(T) { return elementOperation<T, Put<T>>(); });
  withIndexing(launch, args, [&](auto&& indexing) { indexing.inOrder(launch, put); });
}

inline void indexReduce(Launch& launch, const puone_indexing_args& args) {
  using namespace indexed;
  const ElementOperation reduce = reductionOf<
      Bool,
      uint8_t,
      int8_t,
      int16_t,
      int32_t,
      int64_t,
      Half,
      BFloat16,
      float,
      double,
      Complex<float>,
      Complex<double>>(args);
  withIndexing(launch, args, [&](auto&& indexing) { indexing.inOrder(launch, reduce); });
}

} // namespace puone::kernels::PUONE_ISA
