// SPDX-License-Identifier: BSD-3-Clause
// Scans on a device. A block scans a line, tile by tile; if the lines' elements are interleaved, or
// the lines are short, a thread scans a line. If that leaves the device idle, several share a line:
//   - Of blocks, each scans a tile, and learns from the others the total before it
//     (simt/tile_totals.h), so that elements are read once.
//   - Of threads, each scans a chunk, which is too long to be kept: the totals of the chunks are
//     computed first, then scanned, then each chunk is scanned with the total of those before it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <type_traits>

#include "kernels/scan.h"
#include "kernels/simt/axes.h"
#include "kernels/simt/block_scan.h"
#include "kernels/simt/blocks.h"
#include "kernels/simt/runs.h"
#include "kernels/simt/shared.h"
#include "kernels/simt/tile_totals.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {
namespace detail {

/// Contiguous elements per thread, where a block scans a line alone, and where it shares it.
constexpr int kScanItems = 4, kSharedScanItems = 8;
constexpr int64_t kSharedScanTile = kScanThreads * kSharedScanItems;
/// Elements in flight per thread, where a thread scans a line.
constexpr int kScanAhead = 8;
/// A thread scans a line of at most this length.
constexpr int64_t kScanShort = 128;

template <class Op>
struct ScanTask {
  using In = typename Op::In;
  using Gathered = typename Op::Gathered;

  const unsigned char* in;
  unsigned char* outs[2];
  int32_t in_dtype;
  int32_t out_dtypes[2];
  int64_t count, steps[Dimensions::kStrides]; // elements of a line; strides along it
  int64_t chunk, chunks;                      // elements of a chunk, chunks of a line
  int64_t number;                             // of lines
  Gathered* totals; // per line and chunk, with those before it; if lines have several chunks
  bool only_totals; // compute only the chunks' totals
  Axes<Dimensions::kStrides> lines;

  /// The line and chunk of a thread or block.
  struct Part {
    int64_t line, begin, end;
    int64_t at[Dimensions::kStrides]; // offsets of the line
  };

  PUONE_DEVICE Part part(int64_t line, int64_t index) const {
    Part part{line, index * chunk, (index + 1) * chunk, {}};
    if (part.end > count) part.end = count;
    lines.add(line, part.at);
    return part;
  }

  /// The total before a chunk.
  PUONE_DEVICE Gathered carried(int64_t line, int64_t index) const {
    return index == 0 || only_totals ? Op().nothing() : totals[line * chunks + index - 1];
  }

  /// Reads n elements at distance `step`; after the end, repeats the last one.
  template <int n>
  PUONE_DEVICE void read(const Part& part, int64_t first, int64_t step, In (&x)[n][1]) const {
    const unsigned char* at[n];
    PUONE_UNROLL
    for (int e = 0; e < n; ++e) {
      const int64_t i = first + e * step;
      at[e] = in + part.at[0] + (i < part.end ? i : part.end - 1) * steps[0];
    }
    readElements(x, at, in_dtype);
  }

  template <class A>
  PUONE_DEVICE void write(const Part& part, int64_t i, const A& result) const {
    writeAs(outs[0] + part.at[1] + i * steps[1], out_dtypes[0], result);
  }
  template <class A, class B>
  PUONE_DEVICE void write(const Part& part, int64_t i, const Pair<A, B>& result) const {
    writeAs(outs[0] + part.at[1] + i * steps[1], out_dtypes[0], result.first);
    writeAs(outs[1] + part.at[2] + i * steps[2], out_dtypes[1], result.second);
  }
};

/// One thread per chunk; neighbouring threads have neighbouring lines.
template <class Op>
PUONE_GLOBAL(kScanThreads, 3)
void scanByThread(ScanTask<Op> task) {
  const Op op{};
  const int64_t number = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t line = number % task.number, index = number / task.number;
  if (index >= task.chunks) return;
  const auto part = task.part(line, index);
  auto all = task.carried(line, index);
  PUONE_ROLLED
  for (int64_t i = part.begin; i < part.end; i += kScanAhead) {
    typename Op::In x[kScanAhead][1];
    task.read(part, i, 1, x);
    PUONE_UNROLL
    for (int e = 0; e < kScanAhead; ++e) {
      if (i + e >= part.end) break;
      all = op.step(all, x[e][0], i + e);
      if (!task.only_totals) task.write(part, i + e, op.result(all));
    }
  }
  if (task.only_totals) task.totals[line * task.chunks + index] = all;
}

/// A block scans a tile of kItems elements per thread from `first` on. `carry` makes of its total
/// that of all before it. Elements and results pass through shared memory, so that neighbouring
/// threads access neighbouring elements, although each thread scans contiguous ones.
template <int kItems, class Op, class Carry>
PUONE_DEVICE void scanTile(
    const ScanTask<Op>& task,
    const typename ScanTask<Op>::Part& part,
    int64_t first,
    const Carry& carry) {
  using In = typename Op::In;
  using Result = decltype(Op().result(Op().nothing()));
  constexpr uint32_t kTile = kScanThreads * kItems, kPad = kTile / 32; // avoids bank conflicts
  using Larger = std::conditional_t<(sizeof(In) > sizeof(Result)), In, Result>;
  PUONE_SHARED SharedArray<Larger, kTile + kPad> memory;
  auto* const ins = reinterpret_cast<In*>(memory.bytes); // and then the results
  auto* const results = reinterpret_cast<Result*>(memory.bytes);
  const auto slot = [](uint32_t i) { return i + i / 32; };
  const Op op{};
  In x[kItems][1];
  task.read(part, first + threadIdx.x, kScanThreads, x);
  PUONE_UNROLL
  for (int e = 0; e < kItems; ++e) ins[slot(e * kScanThreads + threadIdx.x)] = x[e][0];
  __syncthreads();

  const uint32_t own = threadIdx.x * kItems; // index in the tile
  typename Op::Gathered sums[kItems], sum = op.nothing(), total;
  PUONE_UNROLL
  for (int e = 0; e < kItems; ++e) {
    const int64_t i = first + own + e;
    if (i < part.end) sum = op.step(sum, ins[slot(own + e)], i);
    sums[e] = sum;
  }
  const auto in_tile = before(op, sum, total);
  const auto start = op.combine(carry(total), in_tile);
  PUONE_UNROLL
  for (int e = 0; e < kItems; ++e) {
    results[slot(own + e)] = op.result(op.combine(start, sums[e]));
  }
  __syncthreads();
  PUONE_UNROLL
  for (int e = 0; e < kItems; ++e) {
    const uint32_t i = e * kScanThreads + threadIdx.x;
    if (first + i < part.end) task.write(part, first + i, results[slot(i)]);
  }
  __syncthreads();
}

/// One block per line.
template <class Op>
PUONE_GLOBAL(kScanThreads, 3)
void scanByBlock(ScanTask<Op> task) {
  const Op op{};
  const auto part = task.part(blockIdx.x, 0);
  auto all = op.nothing();
  PUONE_ROLLED
  for (int64_t first = 0; first < part.end; first += kScanThreads * kScanItems) {
    scanTile<kScanItems>(task, part, first, [&](const auto& total) {
      const auto before_it = all;
      all = op.combine(all, total);
      return before_it;
    });
  }
}

/// One block per tile of a line; chunks are tiles.
template <class Op>
PUONE_GLOBAL(kScanThreads, 3)
void scanByTile(ScanTask<Op> task, TileTotals<Op> totals) {
  int64_t line, tile;
  totals.draw(line, tile);
  const auto part = task.part(line, tile);
  scanTile<kSharedScanItems>(
      task, part, part.begin, [&](const auto& total) { return totals.before(line, tile, total); });
}

/// Turns the chunks' totals into their inclusive prefix sums.
template <class Op>
struct ScanTotals {
  PUONE_DEVICE void operator()(const Block& block, int64_t line) const {
    using Gathered = typename Op::Gathered;
    const Op op{};
    Gathered* const own = totals + line * chunks;
    block.scan(
        chunks,
        op.nothing(),
        [=](int64_t i) { return own[i]; },
        [=](const Gathered& a, const Gathered& b) { return op.combine(a, b); },
        [=](int64_t i, const Gathered& sum) { own[i] = sum; });
  }
  typename Op::Gathered* totals;
  int64_t chunks;
};

/// How many pieces a line is divided into.
inline int64_t scanChunks(int64_t wanted, int64_t lines, int64_t count, int64_t least) {
  const int64_t chunks = std::min(wanted / lines, count / least);
  return chunks > 3 ? chunks : 1; // fewer are not worth their cost
}

template <class Op>
void scan(Launch& launch, const puone_scan_args& args) {
  using Gathered = typename Op::Gathered;
  const ScannedSpace space(args);
  const int64_t count = space.along.elements(), lines = space.lines.elements();
  if (count == 0 || lines == 0) return;
  ScanTask<Op> task{
      launch.resolve(args.in.data),
      {resolveOptional(launch, args.outs[0]), resolveOptional(launch, args.outs[1])},
      args.in_dtype,
      {args.out_dtypes[0], args.out_dtypes[1]},
      count,
      {space.along.stride(0), space.along.stride(1), space.along.stride(2)},
      count,
      1,
      lines,
      nullptr,
      false,
      Axes<Dimensions::kStrides>(space.lines)};
  const auto divide = [&](int64_t chunk) {
    task.chunk = chunk;
    task.chunks = (count + chunk - 1) / chunk;
  };
  const auto start = [&](auto kernel, int64_t grid, const auto&... more) {
    dialect::start<dialect::Threads::kCooperating>(
        launch.stream(), kernel, static_cast<uint32_t>(grid), kScanThreads, task, more...);
  };

  const int64_t wanted = int64_t{launch.multiprocessors()} * 2048 * 2; // threads
  const bool side_by_side =
      space.lines.ndim > 0 && std::abs(space.lines.stride(0)) < std::abs(space.along.stride(0));
  if (!side_by_side && count > kScanShort) {
    if (scanChunks(wanted / kScanThreads, lines, count, kSharedScanTile) == 1) {
      return start(scanByBlock<Op>, lines);
    }
    divide(kSharedScanTile);
    return start(scanByTile<Op>, lines * task.chunks, TileTotals<Op>(launch, lines, task.chunks));
  }
  const int64_t chunks = scanChunks(wanted, lines, count, 4 * kScanAhead);
  divide((count + chunks - 1) / chunks);
  const int64_t grid = (lines * task.chunks + kScanThreads - 1) / kScanThreads;
  if (task.chunks > 1) {
    task.totals = static_cast<Gathered*>(
        launch.scratch(static_cast<size_t>(lines * task.chunks) * sizeof(Gathered)));
    task.only_totals = true;
    start(scanByThread<Op>, grid);
    blocks(launch, lines, task.chunks, ScanTotals<Op>{task.totals, task.chunks});
    task.only_totals = false;
  }
  start(scanByThread<Op>, grid);
}

} // namespace detail
} // namespace puone::kernels::PUONE_ISA
