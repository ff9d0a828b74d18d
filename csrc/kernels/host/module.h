// SPDX-License-Identifier: BSD-3-Clause
// Kernels of modules on a host: each is a constant that the shared object exports.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/host/blocks.h"
#include "kernels/host/vector_bytes.h"
#include "kernels/isa.h"
#include "kernels/launch.h"
#include "kernels/module_entry.h"
#include "kernels/operations.h"
#include "kernels/strided.h"
#include "kernels/together.h"

/// Bodies, and lambdas within them, are inlined into the loops, which then vectorise.
#define PUONE_MODULE_FN __attribute__((always_inline)) inline
#define PUONE_MODULE_LAMBDA __attribute__((always_inline))

namespace puone::kernels::PUONE_ISA {

/// Values in kLanes lanes. Those that are reduced together are apart: a loop over lanes is
/// vectorised for each.
template <int64_t kLanes, class T>
struct Lanes {
  PUONE_MODULE_FN explicit Lanes(const T& identity) {
    for (T& value : values) value = identity;
  }
  template <class Combine>
  PUONE_MODULE_FN void add(int64_t lane, const T& value, const Combine& combine) {
    values[lane] = combine(values[lane], value);
  }
  PUONE_MODULE_FN T of(int64_t lane) const {
    return values[lane];
  }
  template <class Combine>
  PUONE_MODULE_FN T combined(const Combine& combine) {
    halve<kLanes / 2>(combine);
    return values[0];
  }
  template <int64_t kWidth, class Combine>
  PUONE_MODULE_FN void halve(const Combine& combine) {
    if constexpr (kWidth > 0) {
#pragma GCC ivdep
      for (int64_t l = 0; l < kWidth; ++l) values[l] = combine(values[l], values[l + kWidth]);
      halve<kWidth / 2>(combine);
    }
  }
  T values[kLanes];
};
template <int64_t kLanes, class T>
struct Lanes<kLanes, Together<T>> {
  PUONE_MODULE_FN explicit Lanes(const Together<T>& identity) : first(identity.first) {}
  template <class Combine>
  PUONE_MODULE_FN void add(int64_t lane, const Together<T>& value, const Combine& combine) {
    first.add(lane, value.first, combine.first);
  }
  PUONE_MODULE_FN Together<T> of(int64_t lane) const {
    return {first.of(lane)};
  }
  template <class Combine>
  PUONE_MODULE_FN Together<T> combined(const Combine& combine) {
    return {first.combined(combine.first)};
  }
  Lanes<kLanes, T> first;
};
template <int64_t kLanes, class T, class... Rest>
struct Lanes<kLanes, Together<T, Rest...>> {
  PUONE_MODULE_FN explicit Lanes(const Together<T, Rest...>& identity)
      : first(identity.first), rest(identity.rest) {}
  template <class Combine>
  PUONE_MODULE_FN void add(
      int64_t lane, const Together<T, Rest...>& value, const Combine& combine) {
    first.add(lane, value.first, combine.first);
    rest.add(lane, value.rest, combine.rest);
  }
  PUONE_MODULE_FN Together<T, Rest...> of(int64_t lane) const {
    return {first.of(lane), rest.of(lane)};
  }
  template <class Combine>
  PUONE_MODULE_FN Together<T, Rest...> combined(const Combine& combine) {
    return {first.combined(combine.first), rest.combined(combine.rest)};
  }
  Lanes<kLanes, T> first;
  Lanes<kLanes, Together<Rest...>> rest;
};

/// The values that are reduced together.
template <class T>
constexpr int kValues = 1;
template <class... T>
constexpr int kValues<Together<T...>> = sizeof...(T);

/// A block whose loops run on all cores if there are fewer blocks than cores. Long reductions are
/// made of pieces, which do not depend on that: equal inputs give equal bits, and sums of floats
/// stay accurate.
class ModuleBlock : public Block {
 public:
  /// Without a launch, other cores are busy with other blocks.
  explicit ModuleBlock(Launch* launch) : launch_(launch) {}

  template <class F>
  void each(int64_t n, const F& f) const {
    ranges(n, kGrain, [&](int64_t begin, int64_t end) {
      const F own = f;
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) own(i);
    });
  }

  template <class T, class Load, class Combine>
  T reduce(int64_t n, T identity, const Load& load, const Combine& combine) const {
    if (n <= kPiece) return inLanes(n, identity, load, combine);
    T all = identity;
    inPieces<T>(
        n,
        kPiece,
        1,
        [&](int64_t begin, int64_t size, T* out) {
          const auto own = [=](int64_t i) { return load(begin + i); };
          *out = inLanes(size, identity, own, combine);
        },
        [&](const T* piece) { all = combine(all, *piece); });
    return all;
  }

  /// The same for rows of `length` elements: load(row, i).
  template <class T, class Load, class Combine>
  T reduceRows(
      int64_t rows, int64_t length, T identity, const Load& load, const Combine& combine) const {
    T all = identity;
    inPieces<T>(
        rows,
        std::max<int64_t>(1, kPiece / std::max<int64_t>(1, length)),
        1,
        [&](int64_t begin, int64_t size, T* out) {
          *out = identity;
          for (int64_t row = begin; row < begin + size; ++row) {
            const auto own = [=](int64_t i) { return load(row, i); };
            *out = combine(*out, ModuleBlock(nullptr).reduce(length, identity, own, combine));
          }
        },
        [&](const T* piece) { all = combine(all, *piece); });
    return all;
  }

  /// Mean of load(0) ... load(n - 1), and sum of squared deviations from it. Each is loaded once.
  template <class Load>
  ops::Moments<float> moments(int64_t n, float /*zero*/, const Load& load) const {
    return momentsOfPieces(n, n, kPiece, [&](int64_t begin, int64_t size, Chunks& chunks) {
      chunks.add(size, [=](int64_t i) { return load(begin + i); });
    });
  }

  /// The same for rows of `length` elements: load(row, i).
  template <class Load>
  ops::Moments<float> momentsRows(
      int64_t rows, int64_t length, float /*zero*/, const Load& load) const {
    const int64_t piece = std::max<int64_t>(1, kPiece / std::max<int64_t>(1, length));
    return momentsOfPieces(
        rows, rows * length, piece, [&](int64_t begin, int64_t size, Chunks& chunks) {
          for (int64_t row = begin; row < begin + size; ++row) {
            chunks.add(length, [=](int64_t i) { return load(row, i); });
          }
        });
  }

  /// Calls f(row, i) for all rows and i of [0, length).
  template <class F>
  void eachOfRows(int64_t rows, int64_t length, const F& f) const {
    ranges(rows, kGrain / std::max<int64_t>(1, length) + 1, [&](int64_t begin, int64_t end) {
      const F own = f;
      for (int64_t row = begin; row < end; ++row) {
#pragma GCC ivdep
        for (int64_t i = 0; i < length; ++i) own(row, i);
      }
    });
  }

  /// The same in an order for memory in which rows, too, are neighbours: in tiles, which read whole
  /// cache lines.
  template <class F>
  void eachOfTiles(int64_t rows, int64_t length, const F& f) const {
    ranges(length, kGrain / kModuleRows, [&](int64_t begin, int64_t end) {
      const F own = f;
      for (int64_t at = begin; at < end; at += kTile) {
        const int64_t behind = std::min(end, at + kTile);
        for (int64_t row = 0; row < rows; ++row) {
#pragma GCC ivdep
          for (int64_t i = at; i < behind; ++i) own(row, i);
        }
      }
    });
  }

  /// As eachOfTiles(), where f writes neighbours for neighbouring rows and not for neighbouring i.
  template <class F>
  void eachOfTilesAcross(int64_t rows, int64_t length, const F& f) const {
    ranges(length, kGrain / kModuleRows, [&](int64_t begin, int64_t end) {
      const F own = f;
      for (int64_t at = begin; at < end; at += kModuleRows) {
        const int64_t behind = std::min(end, at + kModuleRows);
        int64_t row = 0;
        for (; row + kTile <= rows; row += kTile) {
          for (int64_t i = at; i < behind; ++i) {
            __asm__ volatile(""); // no vectors of several i: their parts would be stored apart
#pragma GCC ivdep
            for (int64_t r = 0; r < kTile; ++r) own(row + r, i);
          }
        }
        for (; row < rows; ++row) {
          for (int64_t i = at; i < behind; ++i) own(row, i);
        }
      }
    });
  }

  /// Calls f(column, i) for all columns of [0, width) and i of [0, n).
  template <class F>
  void eachOfColumns(int64_t width, int64_t n, const F& f) const {
    ranges(n, kGrain / kModuleColumns, [&](int64_t begin, int64_t end) {
      const F own = f;
      for (int64_t i = begin; i < end; ++i) {
#pragma GCC ivdep
        for (int64_t column = 0; column < width; ++column) own(column, i);
      }
    });
  }

  /// Calls f(column) where out[column] of reduceColumns() is kept.
  template <class F>
  void eachColumn(int64_t width, const F& f) const {
    each(width, f);
  }

  /// out[column]: the combination of load(column, 0) ... load(column, n - 1).
  template <class T, class Load, class Combine>
  void reduceColumns(
      int64_t width, int64_t n, T identity, const Load& load, const Combine& combine, T* out)
      const {
    for (int64_t column = 0; column < width; ++column) out[column] = identity;
    inPieces<T>(
        n,
        kRows,
        width,
        [&](int64_t begin, int64_t size, T* piece) {
          const Load own = load;
          Lanes<kModuleColumns, T> all(identity);
          for (int64_t i = begin; i < begin + size; ++i) {
#pragma GCC ivdep
            for (int64_t column = 0; column < width; ++column) {
              all.add(column, own(column, i), combine);
            }
          }
          for (int64_t column = 0; column < width; ++column) piece[column] = all.of(column);
        },
        [&](const T* piece) {
          for (int64_t column = 0; column < width; ++column) {
            out[column] = combine(out[column], piece[column]);
          }
        });
  }

 private:
  static constexpr int64_t kPiece = 4096; // elements
  static constexpr int64_t kRows = 256;
  // The floats of a cache line, which a tile writes whole. More would not fit: rows of a power of
  // two meet in few places of a cache.
  static constexpr int64_t kTile = 16;

  template <class T, class Load, class Combine>
  PUONE_MODULE_FN static T inLanes(
      int64_t n, T identity, const Load& load, const Combine& combine) {
    // Several vectors: additions need not wait for each other. All of them are in registers, which
    // are twice as many where they are wide.
    constexpr int64_t kFew = kVectorBytes == 64 ? 32 : 16;
    constexpr int64_t kMany = kValues<T> == 1 ? 64 : kValues<T> == 2 ? 2 * kFew : kFew;
    // Twice the code is worth it only where one of both is left.
    return __builtin_constant_p(n) && n < kMany ? inLanes<kMany / 4>(n, identity, load, combine)
                                                : inLanes<kMany>(n, identity, load, combine);
  }

  template <int64_t kLanes, class T, class Load, class Combine>
  PUONE_MODULE_FN static T inLanes(
      int64_t n, T identity, const Load& load, const Combine& combine) {
    const Load own = load;
    Lanes<kLanes, T> lanes(identity);
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
#pragma GCC ivdep
      for (int64_t l = 0; l < kLanes; ++l) lanes.add(l, own(i + l), combine);
    }
#pragma GCC ivdep
    for (int64_t l = 0; l < n - i; ++l) lanes.add(l, own(i + l), combine);
    return lanes.combined(combine);
  }

  /// Moments of values that are added. A chunk of them is kept, so that its mean and its deviations
  /// are two passes without another load. The moments of chunks are merged in double, because means
  /// may be large against deviations.
  class Chunks {
   public:
    template <class Load>
    PUONE_MODULE_FN void add(int64_t n, const Load& load) {
      const Load own = load;
      for (int64_t i = 0; i < n;) {
        if (size_ == kChunk) finish();
        const int64_t size = std::min(n - i, kChunk - size_);
        float* const to = values_ + size_;
#pragma GCC ivdep
        for (int64_t j = 0; j < size; ++j) to[j] = own(i + j);
        size_ += size;
        i += size;
      }
    }

    /// The mean of nothing is NaN.
    PUONE_MODULE_FN ops::Moments<double> all() {
      if (size_ > 0 || all_.count == 0) finish();
      return all_;
    }

   private:
    static constexpr int64_t kChunk = 1024;

    PUONE_MODULE_FN void finish() {
      const float* const values = values_;
      const auto count = static_cast<float>(size_);
      const auto plus = [](float a, float b) PUONE_MODULE_LAMBDA { return a + b; };
      const auto value = [=](int64_t i) PUONE_MODULE_LAMBDA { return values[i]; };
      const float near = inLanes(size_, 0.0F, value, plus) / count; // the mean, rounded
      const auto each = [=](int64_t i)
                            PUONE_MODULE_LAMBDA { return ops::deviation(values[i], near); };
      const auto sums = inLanes(size_, together(0.0F, 0.0F), each, combineEach(plus, plus));
      all_ = ops::welford_combine(all_, ops::corrected<double>(near, sums, count));
      size_ = 0;
    }

    float values_[kChunk];
    int64_t size_ = 0;
    ops::Moments<double> all_{0, 0, 0};
  };

  /// Of `elements` elements in n parts: add(begin, size, chunks) for pieces of `size` parts.
  template <class Add>
  ops::Moments<float> momentsOfPieces(
      int64_t n, int64_t elements, int64_t size, const Add& add) const {
    const auto ofPiece = [&](int64_t begin, int64_t count) PUONE_MODULE_LAMBDA {
      Chunks chunks;
      add(begin, count, chunks);
      return chunks.all();
    };
    ops::Moments<double> all{0, 0, 0};
    if (elements <= kPiece) {
      all = ofPiece(0, n);
    } else {
      inPieces<ops::Moments<double>>(
          n,
          size,
          1,
          [&](int64_t begin, int64_t count, ops::Moments<double>* out) {
            *out = ofPiece(begin, count);
          },
          [&](const ops::Moments<double>* piece) { all = ops::welford_combine(all, *piece); });
    }
    return {
        static_cast<float>(all.mean),
        static_cast<float>(all.squares),
        static_cast<float>(all.count)};
  }

  template <class F>
  void ranges(int64_t n, int64_t grain, const F& f) const {
    if (launch_ == nullptr) return f(0, n);
    launch_->forRanges(n, grain, f);
  }

  /// Memory for n results. A std::unique_ptr would do, but <memory> takes the compiler as long as
  /// all else that a module includes.
  template <class T>
  class Results {
   public:
    explicit Results(int64_t n) : data_(new T[static_cast<size_t>(n)]()) {}
    ~Results() {
      delete[] data_;
    }
    Results(const Results&) = delete;
    Results& operator=(const Results&) = delete;
    T* at(int64_t i) const {
      return data_ + i;
    }

   private:
    T* const data_;
  };

  /// make(begin, size, out) for each piece of [0, n), then take(out) of each in order; `out` has
  /// room for `width` results.
  template <class T, class Make, class Take>
  void inPieces(int64_t n, int64_t size, int64_t width, const Make& make, const Take& take) const {
    const int64_t pieces = (n + size - 1) / size;
    const int64_t kept = launch_ == nullptr ? 1 : pieces;
    const Results<T> results(kept * width);
    const auto makePiece = [&](int64_t piece, T* out) {
      make(piece * size, std::min(size, n - piece * size), out);
    };
    if (launch_ != nullptr) {
      launch_->forRanges(pieces, kGrain / size / width + 1, [&](int64_t begin, int64_t end) {
        for (int64_t piece = begin; piece < end; ++piece) {
          makePiece(piece, results.at(piece * width));
        }
      });
    }
    for (int64_t piece = 0; piece < pieces; ++piece) {
      T* const result = results.at(launch_ == nullptr ? 0 : piece * width);
      if (launch_ == nullptr) makePiece(piece, result);
      take(result);
    }
  }

  Launch* const launch_;
};

// As map() and blocks(), but each core has a copy of the arguments, which no output can alias.

struct ModuleMap {
  template <class Body>
  static void run(Launch& launch, const Body& body) {
    launch.forRanges(body.args.arguments.count, kGrain, [&](int64_t begin, int64_t end) {
      const Body own = body;
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) own(i);
    });
  }
};

struct ModuleBlocks {
  template <class Body>
  static void run(Launch& launch, const Body& body) {
    constexpr int64_t kFew = 8; // blocks: each is worth all cores
    const int64_t count = body.args.arguments.count, work = body.args.arguments.work;
    if (count < kFew && work > 2 * kGrain) {
      const ModuleBlock block(&launch);
      for (int64_t index = 0; index < count; ++index) body(block, index);
      return;
    }
    const int64_t grain = kGrain / (work > 0 ? work : 1);
    launch.forRanges(count, grain > 0 ? grain : 1, [&](int64_t begin, int64_t end) {
      const Body own = body;
      const ModuleBlock block(nullptr);
      for (int64_t index = begin; index < end; ++index) own(block, index);
    });
  }
};

namespace ops {

/// *at = write(read(*at) + value), as one step.
template <class E, class V>
inline void atomic_add(E* at, V value) {
  using Bits = std::conditional_t<
      sizeof(E) == 1,
      uint8_t,
      std::conditional_t<
          sizeof(E) == 2,
          uint16_t,
          std::conditional_t<sizeof(E) == 4, uint32_t, uint64_t>>>;
  auto* const bits = reinterpret_cast<Bits*>(at);
  Bits old = __atomic_load_n(bits, __ATOMIC_RELAXED);
  Bits sum;
  do {
    sum = std::bit_cast<Bits>(write<E>(add(read(std::bit_cast<E>(old)), value)));
  } while (!__atomic_compare_exchange_n(
      bits, &old, sum, /*weak=*/true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

} // namespace ops
} // namespace puone::kernels::PUONE_ISA

#define PUONE_MODULE_EXPORT(name, Args, Body, Idiom)                                             \
  static_assert(offsetof(Args, arguments) == 0, "the arguments must come first");                \
  extern "C" __attribute__((visibility("default"), used)) const ModuleEntry puone_module_##name; \
  const ModuleEntry puone_module_##name = {sizeof(Args), [](Launch& launch, const void* args) {  \
                                             Idiom::run(                                         \
                                                 launch, Body{*static_cast<const Args*>(args)}); \
                                           }};
