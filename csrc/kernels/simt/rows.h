// SPDX-License-Identifier: BSD-3-Clause
// Rows on a device: a team of threads holds a row in its registers, so that memory is read once and
// written once. X is the type of a row's elements, T the compute type.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <type_traits>

#include "kernels/cast.h"
#include "kernels/launch.h"
#include "kernels/row_math.h"
#include "kernels/simt/blocks.h"
#include "kernels/simt/elementwise.h"
#include "kernels/simt/stored.h"
#include "kernels/simt/vector.h"
#include "kernels/target.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {

/// Elements whose type is known only at run time.
template <class T>
struct Elements {
  Elements() = default;
  Elements(Launch& launch, void* address, int32_t dtype)
      : data(address ? launch.resolve(address) : nullptr), dtype(dtype) {}

  PUONE_DEVICE T at(int64_t i) const {
    return Stored<T>{dtype}.load(data, i);
  }
  PUONE_DEVICE void put(int64_t i, T value) const {
    Stored<T>{dtype}.store(data, i, value);
  }

  unsigned char* data = nullptr; // null: missing
  int32_t dtype = kDtype<T>;
};

/// Calls f(X{}) with the element type, one of those of norms.
template <class F>
void withFloating(int32_t dtype, const F& f) {
  switch (dtype) {
    case PUONE_FLOAT32:
      return f(float{});
    case PUONE_FLOAT64:
      return f(double{});
    case PUONE_FLOAT16:
      return f(Half{});
    case PUONE_BFLOAT16:
      return f(BFloat16{});
  }
  throw std::invalid_argument("norms do not compute in this dtype");
}

/// Elements of a vector of 16 bytes.
template <class X>
constexpr int kWidth = 16 / sizeof(X);

/// Whether rows of `size` elements of all operands can be read in vectors of kWidth<X> elements.
template <class X, class T>
bool canVectorizeRows(int64_t size, std::initializer_list<Elements<T>> all) {
  if (size % kWidth<X> != 0) return false;
  return std::all_of(all.begin(), all.end(), [](const Elements<T>& elements) {
    const auto bytes = static_cast<uintptr_t>(elementSize(elements.dtype) * kWidth<X>);
    return reinterpret_cast<uintptr_t>(elements.data) % bytes == 0;
  });
}

/// Sums, for RowTeam::combine(); also of pairs.
struct Plus {
  template <class T>
  PUONE_FN T operator()(T a, T b) const {
    return a + b;
  }
  template <class T>
  PUONE_FN Pair<T, T> operator()(const Pair<T, T>& a, const Pair<T, T>& b) const {
    return {a.first + b.first, a.second + b.second};
  }
};

/// Elements of a row that a thread holds: if it holds one row, and if it holds two.
constexpr int kOneRow = 16;
constexpr int kTwoRows = 8;

/// Rows and how they are mapped to threads. Dense rows (inner is 1): a team is neighbouring threads
/// of a warp, or a whole block. Other rows: the lanes of a warp have neighbouring rows, and a row's
/// team is one thread of every warp of a block.
struct Rows {
  Rows(int64_t outer, int64_t size, int64_t inner, bool vectorized, int part)
      : count(outer * inner), size(size), inner(inner), vectorized(vectorized), part(part) {
    const bool dense = inner == 1;
    // First use all threads of a warp with few elements each; then increase the elements per
    // thread.
    const auto reached = [&](int32_t bits) {
      const int64_t each = dense && bits <= kWarpBits ? kTwoRows : part;
      return each << bits >= size;
    };
    const int32_t most = dense ? kBlockBits : kBlockBits - kWarpBits;
    while (team_bits < most && !reached(team_bits)) ++team_bits;
  }

  static constexpr int32_t kWarpBits = 5, kBlockBits = 9;
  static_assert(1 << kWarpBits == kWarpThreads && 1 << kBlockBits == kMaxBlockThreads);

  /// Elements of a row that its team holds at a time; whether that is the whole row.
  PUONE_FN int64_t held() const {
    return int64_t{part} << team_bits;
  }
  PUONE_FN bool areHeld() const {
    return size <= held();
  }
  uint32_t blockThreads() const {
    if (inner > 1) return kWarpThreads << team_bits;
    return team_bits > kWarpBits ? 1u << team_bits : 4 * kWarpThreads;
  }
  uint32_t blockCount() const {
    const int64_t rows = inner > 1 ? kWarpThreads : blockThreads() >> team_bits;
    return static_cast<uint32_t>((count + rows - 1) / rows);
  }

  int64_t count, size, inner;
  bool vectorized;
  int32_t part; // elements that a thread holds
  int32_t team_bits = 0;
};

/// A thread's view of its team. All threads of a team must make the same calls in the same order.
class RowTeam {
 public:
  PUONE_DEVICE explicit RowTeam(const Rows& rows) : rows_(rows) {
    const uint32_t thread = threadIdx.x;
    if (rows.inner > 1) {
      row_ = static_cast<int64_t>(blockIdx.x) * kWarpThreads + thread % kWarpThreads;
      rank_ = static_cast<int32_t>(thread / kWarpThreads);
    } else {
      row_ = (static_cast<int64_t>(blockIdx.x) * blockDim.x + thread) >> rows.team_bits;
      rank_ = static_cast<int32_t>(thread & ((1u << rows.team_bits) - 1));
    }
  }

  PUONE_DEVICE int64_t row() const {
    return row_;
  }
  PUONE_DEVICE int32_t rank() const {
    return rank_;
  }
  /// Whether the row exists. Threads after the last row take part as well: a warp must stay
  /// together.
  PUONE_DEVICE bool isThere() const {
    return row_ < rows_.count;
  }
  PUONE_DEVICE bool isFirst() const {
    return rank_ == 0 && isThere();
  }
  /// The index of the row's first element.
  PUONE_DEVICE int64_t start() const {
    if (rows_.inner == 1) return row_ * rows_.size;
    return row_ / rows_.inner * rows_.inner * rows_.size + row_ % rows_.inner;
  }

  /// Combines the values of the team's threads.
  template <class T, class Combine>
  PUONE_DEVICE T all(T mine, const Combine& combine) const {
    if (rows_.inner > 1) return acrossWarps(mine, combine);
    if (rows_.team_bits > Rows::kWarpBits) return Block().all(mine, combine);
    for (int bits = (1 << rows_.team_bits) / 2; bits > 0; bits /= 2) {
      mine = combine(mine, shuffleXor(mine, bits));
    }
    return mine;
  }

 private:
  template <class T, class Combine>
  PUONE_DEVICE T acrossWarps(T mine, const Combine& combine) const {
    if (rows_.team_bits == 0) return mine;
    PUONE_SHARED T all[kMaxBlockThreads];
    all[threadIdx.x] = mine;
    __syncthreads();
    const uint32_t lane = threadIdx.x % kWarpThreads;
    mine = all[lane];
    for (uint32_t i = lane + kWarpThreads; i < blockDim.x; i += kWarpThreads) {
      mine = combine(mine, all[i]);
    }
    __syncthreads();
    return mine;
  }

  const Rows& rows_;
  int64_t row_;
  int32_t rank_;
};

/// A thread's elements of a piece of a row, in vectors of kElements. A piece is what a team can
/// hold.
template <class X, int kElements, int kPart>
class RowPart {
 public:
  using T = RowType<X>;

  /// The piece begins at element `first`.
  PUONE_DEVICE RowPart(const Rows& rows, const RowTeam& team, int64_t first)
      : team_bits_(rows.team_bits),
        rank_(team.rank()),
        first_(first),
        start_(team.start()),
        stride_(rows.inner) {
    if (!team.isThere()) return;
    const int64_t left = rows.size - first;
    const auto size = static_cast<int>(left < rows.held() ? left : rows.held());
    const int vectors = size / kElements - rank_ + (1 << team_bits_) - 1;
    if (vectors > 0) count_ = (vectors >> team_bits_) * kElements;
  }

  /// Calls f(k) for the elements x[k] of a thread's array x.
  template <class F>
  PUONE_DEVICE void each(const F& f) const {
    PUONE_UNROLL
    for (int k = 0; k < kPart; ++k) {
      if (k < count_) f(k);
    }
  }

  /// The index of the piece's first element, the index of x[k] in the piece, and whether x[k] is
  /// the first of a vector.
  PUONE_DEVICE int64_t first() const {
    return first_;
  }
  PUONE_DEVICE int offset(int k) const {
    return place(k / kElements) + k % kElements;
  }
  PUONE_DEVICE bool startsVector(int k) const {
    return k % kElements == 0;
  }

  /// Reads the row's elements from `from`, whose type is X.
  PUONE_DEVICE void read(T (&x)[kPart], const Elements<T>& from) const {
    read(x, reinterpret_cast<const X*>(from.data) + start_, stride_);
  }
  PUONE_DEVICE void write(const T (&x)[kPart], const Elements<T>& to) const {
    write(x, reinterpret_cast<X*>(to.data) + start_);
  }

  /// Reads from `from`, of type X or T, at the indices of the row's elements plus `start`.
  PUONE_DEVICE void readParameters(T (&x)[kPart], const Elements<T>& from, int64_t start) const {
    constexpr int64_t kDense = 1;
    if (from.dtype == kDtype<X>) {
      read(x, reinterpret_cast<const X*>(from.data) + start, kDense);
    } else {
      read(x, reinterpret_cast<const T*>(from.data) + start, kDense);
    }
  }
  PUONE_DEVICE void readParameters(T (&x)[kPart], const T* from) const {
    read(x, from, 1);
  }
  /// Writes elements of type X or, where one of the two types is a 16-bit float, of another type.
  PUONE_DEVICE void writeAny(const T (&x)[kPart], const Elements<T>& to) const {
    if (to.dtype == kDtype<X>) return write(x, to);
    if constexpr (sizeof(X) < sizeof(T)) {
      write(x, reinterpret_cast<T*>(to.data) + start_);
    } else {
      StoredAs<T>{to.dtype}.visit(
          [&]<class E>(Type<E>) { write(x, reinterpret_cast<E*>(to.data) + start_); });
    }
  }

  /// Writes f(x[k], weight, bias) to `to`, of type X, with the elements of `weight` (1 if it is
  /// missing) and `bias` (0) at the indices of the row's elements plus `start`.
  template <class F>
  PUONE_DEVICE void writeWith(
      const T (&x)[kPart],
      const Elements<T>& to,
      const Elements<T>& weight,
      const Elements<T>& bias,
      int64_t start,
      const F& f) const {
    X* const out = reinterpret_cast<X*>(to.data) + start_ + first_;
    PUONE_UNROLL
    for (int p = 0; p < kPart / kElements; ++p) {
      if (p * kElements >= count_) break;
      T weights[kElements], biases[kElements];
      readVector(weights, weight, start + first_ + place(p), T(1));
      readVector(biases, bias, start + first_ + place(p), T(0));
      T results[kElements];
      PUONE_UNROLL
      for (int e = 0; e < kElements; ++e) {
        results[e] = f(x[p * kElements + e], weights[e], biases[e]);
      }
      detail::writeVector<X, kElements>(results, out + place(p));
    }
  }

 private:
  /// Reads kElements of type X or T from index `at` on; `other` where there are none.
  PUONE_DEVICE static void readVector(
      T (&values)[kElements], const Elements<T>& from, int64_t at, T other) {
    const auto readAs = [&]<class E>(Type<E>) {
      detail::readVector<E, kElements>(values, reinterpret_cast<const E*>(from.data) + at);
    };
    if (from.data == nullptr) {
      PUONE_UNROLL
      for (int e = 0; e < kElements; ++e) values[e] = other;
    } else if (from.dtype == kDtype<X>) {
      readAs(Type<X>());
    } else {
      readAs(Type<T>());
    }
  }

  template <class Stored>
  PUONE_DEVICE void read(T (&x)[kPart], const Stored* from, int64_t stride) const {
    using In = detail::AlignedVector<Stored, kElements>;
    In loaded[kPart / kElements];
    from += first_ * stride;
    PUONE_UNROLL
    for (int p = 0; p < kPart / kElements; ++p) {
      if (p * kElements >= count_) break;
      loaded[p] = detail::loadVector<In>(from + place(p, stride));
    }
    PUONE_UNROLL
    for (int k = 0; k < kPart; ++k) {
      x[k] = cast<T>(loaded[k / kElements].elements[k % kElements]);
    }
  }

  template <class Stored>
  PUONE_DEVICE void write(const T (&x)[kPart], Stored* to) const {
    to += first_ * stride_;
    PUONE_UNROLL
    for (int p = 0; p < kPart / kElements; ++p) {
      if (p * kElements >= count_) break;
      detail::writeVector<Stored, kElements>(x + p * kElements, to + place(p, stride_));
    }
  }

  /// The index of a vector's first element in the piece; its offset in memory. Vectorised rows are
  /// dense.
  PUONE_DEVICE int place(int p) const {
    return ((p << team_bits_) + rank_) * kElements;
  }
  PUONE_DEVICE int64_t place(int p, int64_t stride) const {
    return kElements == 1 ? place(p) * stride : place(p);
  }

  int32_t team_bits_;
  int32_t rank_;
  int count_ = 0;
  int64_t first_, start_, stride_;
};

namespace detail {

template <class Body, int kElements>
PUONE_GLOBAL(kMaxBlockThreads, Body::kBlocks)
void rowsKernel(Rows rows, Body body) {
  body.template run<kElements>(rows, RowTeam(rows));
}

template <class Body, int kElements>
void startRows(Launch& launch, const Rows& rows, const Body& body) {
  dialect::start<dialect::Threads::kCooperating>(
      launch.stream(),
      rowsKernel<Body, kElements>,
      rows.blockCount(),
      rows.blockThreads(),
      rows,
      body);
}

} // namespace detail

/// Calls body.run<kElements>(rows, team) for each row, with all threads of its team; Body is a
/// RowBody.
template <class Body>
void forRows(Launch& launch, const Rows& rows, const Body& body) {
  if (rows.count <= 0) return;
  if (rows.vectorized) {
    detail::startRows<Body, kWidth<typename Body::Element>>(launch, rows, body);
  } else {
    detail::startRows<Body, 1>(launch, rows, body);
  }
}

/// Base of the functions over rows of X, for threads that hold kHeld elements of each row.
template <class X, int kHeld>
struct RowBody {
  using Element = X;
  using T = RowType<X>;
  template <int kElements>
  using Part = RowPart<X, kElements, kHeld>;
  static constexpr int kPart = kHeld;
  /// Blocks whose registers fit on a multiprocessor.
  static constexpr int kBlocks = sizeof(T) == sizeof(float) ? 2 : 1;
};

} // namespace puone::kernels::PUONE_ISA
