// SPDX-License-Identifier: BSD-3-Clause
// Scans on a host: neighbouring lines are scanned together, so that steps vectorise; if the scanned
// dimension is the dense one, one line at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "kernels/cast.h"
#include "kernels/scan.h"
#include "kernels/strided.h"

namespace puone::kernels::PUONE_ISA {

/// Elements of a line, or neighbouring lines, that are processed at a time.
constexpr int64_t kScanPiece = 256;

namespace detail {

template <class Op>
class Scan {
 public:
  Scan(Launch& launch, const puone_scan_args& args) : args_(args), space_(args) {
    in_ = launch.resolve(args.in.data);
    for (int o = 0; o < 2; ++o) outs_[o] = resolveOptional(launch, args.outs[o]);
    read_ = castRowOf(kDtype<In>, args.in_dtype);
    run(launch);
  }

 private:
  using In = typename Op::In;
  using Gathered = typename Op::Gathered;
  using Result = decltype(Op().result(Gathered()));

  void run(Launch& launch) {
    const int64_t count = along_.elements(), length = lines_.length();
    if (count == 0 || length == 0) return;
    const bool side_by_side =
        lines_.ndim > 0 && std::abs(lines_.stride(0)) < std::abs(along_.stride(0));
    const int64_t columns = side_by_side ? std::min(length, kScanPiece) : 1;
    const int64_t strips = (length + columns - 1) / columns;
    const int64_t grain = std::max<int64_t>(kGrain / (columns * count), 1);
    launch.forRanges(lines_.elements() / length * strips, grain, [&](int64_t i, int64_t end) {
      for (; i < end; ++i) {
        const int64_t first = i % strips * columns;
        const Cursor cursor(lines_, i / strips * length + first);
        if (side_by_side) {
          sideBySide(cursor, std::min(columns, length - first), count);
        } else {
          oneLine(cursor, count);
        }
      }
    });
  }

  void sideBySide(const Cursor& cursor, int64_t columns, int64_t count) const {
    In x[kScanPiece];
    Gathered all[kScanPiece];
    Result results[kScanPiece];
    for (int64_t j = 0; j < columns; ++j) all[j] = op_.nothing();
    for (int64_t i = 0; i < count; ++i) {
      const auto at = [&](int o) { return cursor.offset(o) + i * along_.stride(o); };
      read_(bytes(x), sizeof(In), in_ + at(0), lines_.stride(0), columns);
      for (int64_t j = 0; j < columns; ++j) {
        all[j] = op_.step(all[j], x[j], i);
        results[j] = op_.result(all[j]);
      }
      write(results, columns, at(1), lines_.stride(1), at(2), lines_.stride(2));
    }
  }

  void oneLine(const Cursor& cursor, int64_t count) const {
    In x[kScanPiece];
    Result results[kScanPiece];
    Gathered all = op_.nothing();
    for (int64_t i = 0, n = 0; i < count; i += n) {
      n = std::min(kScanPiece, count - i);
      const auto at = [&](int o) { return cursor.offset(o) + i * along_.stride(o); };
      read_(bytes(x), sizeof(In), in_ + at(0), along_.stride(0), n);
      for (int64_t j = 0; j < n; ++j) {
        all = op_.step(all, x[j], i + j);
        results[j] = op_.result(all);
      }
      write(results, n, at(1), along_.stride(1), at(2), along_.stride(2));
    }
  }

  template <class A>
  void write(
      const A* results, int64_t n, int64_t at, int64_t stride, int64_t /*at*/, int64_t /*stride*/)
      const {
    store(0, results, sizeof(A), n, at, stride, kDtype<A>);
  }
  template <class A, class B>
  void write(
      const Pair<A, B>* results,
      int64_t n,
      int64_t at,
      int64_t stride,
      int64_t at_second,
      int64_t stride_second) const {
    store(0, &results->first, sizeof *results, n, at, stride, kDtype<A>);
    store(1, &results->second, sizeof *results, n, at_second, stride_second, kDtype<B>);
  }
  void store(
      int o,
      const void* results,
      int64_t step,
      int64_t n,
      int64_t at,
      int64_t stride,
      int32_t dtype) const {
    castRowOf(args_.out_dtypes[o], dtype)(
        outs_[o] + at, stride, static_cast<const unsigned char*>(results), step, n);
  }

  static unsigned char* bytes(In* x) {
    return reinterpret_cast<unsigned char*>(x);
  }

  const puone_scan_args& args_;
  ScannedSpace space_;
  const Dimensions& along_ = space_.along;
  const Dimensions& lines_ = space_.lines;
  const unsigned char* in_;
  unsigned char* outs_[2];
  RowFunction read_;
  Op op_;
};

template <class Op>
void scan(Launch& launch, const puone_scan_args& args) {
  Scan<Op>(launch, args);
}

} // namespace detail
} // namespace puone::kernels::PUONE_ISA
