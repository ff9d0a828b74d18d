// SPDX-License-Identifier: BSD-3-Clause
// Reductions on a host, in pieces that vectorise: along the reduced dimension if that is the dense
// one, else whole rows of neighbouring outputs at a time. The pieces do not depend on the number of
// cores.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>

#include "kernels/cast.h"
#include "kernels/dimensions.h"
#include "kernels/reduce.h"
#include "kernels/strided.h"

namespace puone::kernels::PUONE_ISA {

/// Elements of one output that are reduced at a time; outputs that are reduced together.
constexpr int64_t kReducePiece = 1024;
constexpr int64_t kReduceColumns = 512;
/// Rows of outputs that are reduced at a time.
constexpr int64_t kReduceRows = 16;
/// Elements that one core reduces on its own.
constexpr int64_t kReduceChunk = 64 << 10;

namespace detail {

/// How a reduction adds elements:
///   piece   combines n contiguous elements with `gathered`; x[0] has position `first`
///   rows    combines the elements of some rows with the columns' results so far, `all`
template <class R>
class Pieces;

template <class Op>
class Pieces<Fold<Op>> {
 public:
  using In = typename Op::In;
  using Lane = typename Op::Lane;
  using Gathered = typename Op::Wide;

  explicit Pieces(const Fold<Op>& fold) : op_(fold.op) {}

  void piece(const In* x, int64_t n, int64_t /*first*/, Gathered& gathered) const {
    constexpr int kLanes = sizeof(In) < 8 ? 64 : 32;
    gathered = op_.combine(gathered, n < kLanes ? inLanes<8>(x, n) : inLanes<kLanes>(x, n));
  }

  void rows(
      const In* const* x, int count, int64_t columns, int64_t /*first*/, Gathered* all) const {
    Lane lanes[kReduceColumns];
    for (int64_t j = 0; j < columns; ++j) lanes[j] = op_.identity();
    int r = 0;
    for (; r + 4 <= count; r += 4) {
      const In *const a = x[r], *const b = x[r + 1], *const c = x[r + 2], *const d = x[r + 3];
      for (int64_t j = 0; j < columns; ++j) {
        lanes[j] = op_.step(op_.step(op_.step(op_.step(lanes[j], a[j]), b[j]), c[j]), d[j]);
      }
    }
    for (; r < count; ++r) {
      for (int64_t j = 0; j < columns; ++j) lanes[j] = op_.step(lanes[j], x[r][j]);
    }
    for (int64_t j = 0; j < columns; ++j) all[j] = op_.combine(all[j], cast<Gathered>(lanes[j]));
  }

 private:
  template <int kLanes>
  Gathered inLanes(const In* x, int64_t n) const {
    Lane lanes[kLanes];
    for (Lane& lane : lanes) lane = op_.identity();
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      for (int l = 0; l < kLanes; ++l) lanes[l] = op_.step(lanes[l], x[i + l]);
    }
    for (int l = 0; i < n; ++i, ++l) lanes[l] = op_.step(lanes[l], x[i]);
    Gathered all[kLanes];
    for (int l = 0; l < kLanes; ++l) all[l] = cast<Gathered>(lanes[l]);
    for (int width = kLanes / 2; width > 0; width /= 2) {
      for (int l = 0; l < width; ++l) all[l] = op_.combine(all[l], all[l + width]);
    }
    return all[0];
  }

  const Op& op_;
};

template <class Op>
class Pieces<Extreme<Op>> {
 public:
  using In = typename Op::In;
  using Gathered = Found<In>;

  explicit Pieces(const Extreme<Op>& extreme) : extreme_(extreme) {}

  void piece(const In* x, int64_t n, int64_t first, Gathered& all) const {
    // Find the value first, in a loop that vectorises; then its position.
    constexpr int kLanes = 32;
    In lanes[kLanes];
    for (In& lane : lanes) lane = x[0];
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      for (int l = 0; l < kLanes; ++l) {
        lanes[l] = Op::better(x[i + l], lanes[l]) ? x[i + l] : lanes[l];
      }
    }
    for (; i < n; ++i) lanes[0] = Op::better(x[i], lanes[0]) ? x[i] : lanes[0];
    In value = lanes[0];
    for (const In lane : lanes) value = Op::better(lane, value) ? lane : value;
    if (all.position >= 0 && !Op::better(value, all.value)) return;
    int64_t position = 0;
    while (Op::better(value, x[position])) ++position;
    all = {x[position], first + position};
  }

  void rows(const In* const* x, int count, int64_t columns, int64_t first, Gathered* all) const {
    In values[kReduceColumns];
    int32_t found[kReduceColumns];
    for (int64_t j = 0; j < columns; ++j) values[j] = x[0][j], found[j] = 0;
    for (int r = 1; r < count; ++r) {
      for (int64_t j = 0; j < columns; ++j) {
        const bool better = Op::better(x[r][j], values[j]);
        values[j] = better ? x[r][j] : values[j];
        found[j] = better ? r : found[j];
      }
    }
    for (int64_t j = 0; j < columns; ++j) {
      all[j] = extreme_.combine(all[j], Gathered{values[j], first + found[j]});
    }
  }

 private:
  const Extreme<Op>& extreme_;
};

template <class T>
class Pieces<Moments<T>> {
 public:
  using Gathered = typename Moments<T>::Gathered;

  explicit Pieces(const Moments<T>& moments) : moments_(moments) {}

  void piece(const T* x, int64_t n, int64_t /*first*/, Gathered& all) const {
    const T middle = static_cast<T>(sum(n, [=](int64_t i) { return x[i]; }) / n);
    const double off = sum(n, [=](int64_t i) { return x[i] - middle; });
    const double squares = sum(n, [=](int64_t i) { return (x[i] - middle) * (x[i] - middle); });
    all = moments_.combine(all, moments_.gathered(n, middle, off, squares));
  }

  void rows(const T* const* x, int count, int64_t columns, int64_t /*first*/, Gathered* all) const {
    T middle[kReduceColumns], off[kReduceColumns], squares[kReduceColumns];
    for (int64_t j = 0; j < columns; ++j) middle[j] = off[j] = squares[j] = 0;
    for (int r = 0; r < count; ++r) {
      for (int64_t j = 0; j < columns; ++j) middle[j] += x[r][j];
    }
    for (int64_t j = 0; j < columns; ++j) middle[j] /= static_cast<T>(count);
    for (int r = 0; r < count; ++r) {
      for (int64_t j = 0; j < columns; ++j) {
        const T d = x[r][j] - middle[j];
        off[j] += d;
        squares[j] += d * d;
      }
    }
    for (int64_t j = 0; j < columns; ++j) {
      all[j] = moments_.combine(all[j], moments_.gathered(count, middle[j], off[j], squares[j]));
    }
  }

 private:
  template <class Load>
  static double sum(int64_t n, const Load& load) {
    constexpr int kLanes = 32;
    T lanes[kLanes] = {};
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      for (int l = 0; l < kLanes; ++l) lanes[l] += load(i + l);
    }
    for (int l = 0; i < n; ++i, ++l) lanes[l] += load(i);
    double all = 0;
    for (const T lane : lanes) all += lane;
    return all;
  }

  const Moments<T>& moments_;
};

/// The work: outputs in strips along their innermost dimension, their elements in chunks.
struct ReducePlan : ReducedSpace {
  ReducePlan(Launch& launch, const puone_reduce_args& args, int64_t element, bool in_order)
      : ReducedSpace(args, in_order) {
    in = resolveOptional(launch, args.in);
    to_element = castRowOf(static_cast<int32_t>(element), args.in_dtype);
    // Go along the reduced dimension only if it is dense, or if there is no other dimension.
    const int64_t along_reduced = std::abs(reduced.stride(0)),
                  along_kept = std::abs(kept.stride(0));
    by_rows = kept.ndim > 0 && reduced.ndim > 0 &&
              (along_kept < along_reduced || (reduced.length() < 16 && kept.length() >= 64));
    const int64_t length = kept.length();
    columns =
        by_rows
            ? std::min(length, kReduceColumns)
            : std::clamp<int64_t>(
                  kReduceChunk / std::max<int64_t>(count, 1), 1, std::min(length, kReduceColumns));
    strips_per_row = columns > 0 ? (length + columns - 1) / columns : 0;
    strips = outputs > 0 ? outputs / length * strips_per_row : 0;
    chunk = by_rows ? std::max(kReduceChunk / columns, kReduceRows) : kReduceChunk;
    chunks = std::max<int64_t>((count + chunk - 1) / chunk, 1);
  }

  /// A cursor at a strip's first output; `n` becomes the number of its outputs.
  Cursor strip(int64_t index, int64_t& n) const {
    const int64_t first = index % strips_per_row * columns;
    n = std::min(columns, kept.length() - first);
    return Cursor(kept, index / strips_per_row * kept.length() + first);
  }

  const unsigned char* in;
  RowFunction to_element;
  bool by_rows;
  int64_t columns, strips_per_row, strips, chunk, chunks;
};

template <class R>
void reducePieces(
    const R& op,
    const ReducePlan& plan,
    const unsigned char* in,
    int64_t begin,
    int64_t end,
    bool direct,
    typename R::Gathered& all) {
  using In = typename R::In;
  alignas(64) In buffer[kReducePiece];
  const int64_t stride = plan.reduced.stride(0);
  direct = direct && stride == static_cast<int64_t>(sizeof(In));
  if (direct && plan.reduced.ndim == 1) {
    for (int64_t n = 0; begin < end; begin += n) {
      n = std::min(kReducePiece, end - begin);
      Pieces<R>(op).piece(reinterpret_cast<const In*>(in) + begin, n, begin, all);
    }
    return;
  }
  Cursor cursor(plan.reduced, begin);
  while (begin < end) {
    const int64_t wanted = std::min(kReducePiece, end - begin);
    const In* x = buffer;
    if (direct && cursor.left() >= wanted) {
      x = reinterpret_cast<const In*>(in + cursor.offset(0));
      cursor.advance(wanted);
    } else {
      for (int64_t n = 0, m = 0; n < wanted; n += m) {
        m = std::min(cursor.left(), wanted - n);
        plan.to_element(
            reinterpret_cast<unsigned char*>(buffer + n),
            sizeof(In),
            in + cursor.offset(0),
            stride,
            m);
        cursor.advance(m);
      }
    }
    Pieces<R>(op).piece(x, wanted, begin, all);
    begin += wanted;
  }
}

template <class R>
void reduceRows(
    const R& op,
    const ReducePlan& plan,
    const unsigned char* in,
    int64_t begin,
    int64_t end,
    bool direct,
    int64_t columns,
    typename R::Gathered* all) {
  using In = typename R::In;
  alignas(64) In buffer[kReduceRows][kReduceColumns];
  const int64_t stride = plan.kept.stride(0);
  direct = direct && stride == static_cast<int64_t>(sizeof(In));
  Cursor cursor(plan.reduced, begin);
  for (int64_t n = 0; begin < end; begin += n) {
    const In* rows[kReduceRows];
    n = std::min(kReduceRows, end - begin);
    for (int64_t r = 0; r < n; ++r) {
      const unsigned char* row = in + cursor.offset(0);
      if (!direct) {
        plan.to_element(
            reinterpret_cast<unsigned char*>(buffer[r]), sizeof(In), row, stride, columns);
      }
      rows[r] = direct ? reinterpret_cast<const In*>(row) : buffer[r];
      cursor.advance(1);
    }
    Pieces<R>(op).rows(rows, static_cast<int>(n), columns, begin, all);
  }
}

/// Writes the outputs of a strip.
class StripWriter {
 public:
  StripWriter(Launch& launch, const ReducePlan& plan, const puone_reduce_args& args)
      : plan_(plan), args_(args) {
    for (int o = 0; o < 2; ++o) outs_[o] = resolveOptional(launch, args.outs[o]);
  }

  template <class R>
  void write(const R& op, const Cursor& cursor, const typename R::Gathered* all, int64_t n) const {
    using Result = decltype(op.finish(*all, 0));
    finish(op, cursor, all, n, static_cast<const Result*>(nullptr));
  }

 private:
  template <class R, class A>
  void finish(
      const R& op, const Cursor& cursor, const typename R::Gathered* all, int64_t n, const A*)
      const {
    A results[kReduceColumns];
    for (int64_t j = 0; j < n; ++j) results[j] = op.finish(all[j], plan_.count);
    store(0, cursor, results, n);
  }

  template <class R, class A, class B>
  void finish(
      const R& op,
      const Cursor& cursor,
      const typename R::Gathered* all,
      int64_t n,
      const Pair<A, B>*) const {
    A first[kReduceColumns];
    B second[kReduceColumns];
    for (int64_t j = 0; j < n; ++j) {
      const Pair<A, B> result = op.finish(all[j], plan_.count);
      first[j] = result.first;
      second[j] = result.second;
    }
    if (args_.outs[0].data) store(0, cursor, first, n);
    if (args_.outs[1].data) store(1, cursor, second, n);
  }

  template <class A>
  void store(int o, const Cursor& cursor, const A* results, int64_t n) const {
    castRowOf(args_.out_dtypes[o], kDtype<A>)(
        outs_[o] + cursor.offset(1 + o),
        plan_.kept.stride(1 + o),
        reinterpret_cast<const unsigned char*>(results),
        sizeof(A),
        n);
  }

  const ReducePlan& plan_;
  const puone_reduce_args& args_;
  unsigned char* outs_[2];
};

template <class R>
void reduce(Launch& launch, const puone_reduce_args& args) {
  using Gathered = typename R::Gathered;
  const R op(args);
  const ReducePlan plan(launch, args, kDtype<typename R::In>, kCountsPositions<R>);
  const StripWriter writer(launch, plan, args);
  const bool direct = args.in_dtype == kDtype<typename R::In>;
  const std::unique_ptr<Gathered[]> parts(
      plan.chunks > 1 ? new Gathered[static_cast<size_t>(plan.strips * plan.chunks * plan.columns)]
                      : nullptr);

  const int64_t work = std::max<int64_t>(plan.columns * std::min(plan.count, plan.chunk), 1);
  const int64_t grain = std::max<int64_t>(kGrain / work, 1);
  launch.forRanges(plan.strips * plan.chunks, grain, [&](int64_t task, int64_t last_task) {
    for (; task < last_task; ++task) {
      int64_t n;
      const int64_t strip = task / plan.chunks, begin = task % plan.chunks * plan.chunk;
      const int64_t end = std::min(begin + plan.chunk, plan.count);
      const Cursor cursor = plan.strip(strip, n);
      Gathered local[kReduceColumns];
      Gathered* const all = parts ? &parts[task * plan.columns] : local;
      for (int64_t j = 0; j < n; ++j) all[j] = op.nothing();
      const unsigned char* const in = plan.in + cursor.offset(0);
      if (plan.by_rows) {
        reduceRows(op, plan, in, begin, end, direct, n, all);
      } else {
        for (int64_t j = 0; j < n; ++j) {
          reducePieces(op, plan, in + j * plan.kept.stride(0), begin, end, direct, all[j]);
        }
      }
      if (!parts) writer.write(op, cursor, all, n);
    }
  });
  if (!parts) return;
  const int64_t few = std::max<int64_t>(kGrain / (plan.chunks * plan.columns), 1);
  launch.forRanges(plan.strips, few, [&](int64_t strip, int64_t last_strip) {
    for (; strip < last_strip; ++strip) {
      int64_t n;
      const Cursor cursor = plan.strip(strip, n);
      Gathered* const all = &parts[strip * plan.chunks * plan.columns];
      for (int64_t c = 1; c < plan.chunks; ++c) {
        const Gathered* const more = all + c * plan.columns;
        for (int64_t j = 0; j < n; ++j) all[j] = op.combine(all[j], more[j]);
      }
      writer.write(op, cursor, all, n);
    }
  });
}

} // namespace detail
} // namespace puone::kernels::PUONE_ISA
