// SPDX-License-Identifier: BSD-3-Clause
// Scans on a device. A block scans a line, tile by tile; if the lines' elements are interleaved, or
// the lines are short, a thread scans a line. If that leaves the device idle, lines are divided
// into chunks: the totals of the chunks are computed first, then scanned, then each chunk is
// scanned with the total of those before it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "kernels/scan.h"
#include "kernels/simt/axes.h"
#include "kernels/simt/blocks.h"
#include "kernels/simt/runs.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {
namespace detail {

constexpr uint32_t kScanThreads = 256;
/// Contiguous elements per thread, where a block scans a line.
constexpr int kScanItems = 4;
constexpr int64_t kScanTile = kScanThreads * kScanItems;
/// Elements in flight per thread, where a thread scans a line.
constexpr int kScanAhead = 8;
/// A thread scans a line of at most this length.
constexpr int64_t kScanShort = 128;
/// Which scans have a kernel for interleaved and for short lines.
template <class Op>
constexpr bool kScansByThread = true;

/// The exclusive scan of the values of a block's threads. `all` becomes their total.
template <class Op, class Gathered>
PUONE_DEVICE Gathered before(const Op& op, Gathered mine, Gathered& all) {
  constexpr uint32_t kWarps = kScanThreads / kWarpThreads;
  PUONE_SHARED SharedArray<Gathered, kWarps> memory;
  Gathered* const warps = memory.data();
  const uint32_t lane = threadIdx.x % kWarpThreads, warp = threadIdx.x / kWarpThreads;
  for (uint32_t by = 1; by < kWarpThreads; by *= 2) {
    const Gathered other = shuffleUp(mine, by);
    if (lane >= by) mine = op.combine(other, mine);
  }
  if (lane == kWarpThreads - 1) warps[warp] = mine;
  const Gathered left = shuffleUp(mine, 1);
  __syncthreads();
  Gathered start = op.nothing();
  all = op.nothing();
  for (uint32_t w = 0; w < kWarps; ++w) {
    if (w == warp) start = all;
    all = op.combine(all, warps[w]);
  }
  __syncthreads();
  return lane == 0 ? start : op.combine(start, left);
}

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

/// One block per chunk. Elements and results pass through shared memory, so that neighbouring
/// threads access neighbouring elements, although each thread scans contiguous ones.
template <class Op>
PUONE_GLOBAL(kScanThreads, 3)
void scanByBlock(ScanTask<Op> task) {
  using In = typename Op::In;
  using Result = decltype(Op().result(Op().nothing()));
  constexpr uint32_t kPad = kScanThreads / 8; // avoids bank conflicts
  PUONE_SHARED SharedArray<In, kScanTile + kPad> in_memory;
  PUONE_SHARED SharedArray<Result, kScanTile + kPad> out_memory;
  In* const ins = in_memory.data();
  Result* const results = out_memory.data();
  const auto slot = [](uint32_t i) { return i + i / 32; };
  const Op op{};
  const int64_t line = task.chunks == 1 ? blockIdx.x : blockIdx.x / task.chunks;
  const int64_t index = task.chunks == 1 ? 0 : blockIdx.x % task.chunks;
  const auto part = task.part(line, index);
  auto all = task.carried(line, index);
  PUONE_ROLLED
  for (int64_t first = part.begin; first < part.end; first += kScanTile) {
    In x[kScanItems][1];
    task.read(part, first + threadIdx.x, kScanThreads, x);
    PUONE_UNROLL
    for (int e = 0; e < kScanItems; ++e) ins[slot(e * kScanThreads + threadIdx.x)] = x[e][0];
    __syncthreads();

    const uint32_t own = threadIdx.x * kScanItems; // index in the tile
    typename Op::Gathered sums[kScanItems], sum = op.nothing();
    PUONE_UNROLL
    for (int e = 0; e < kScanItems; ++e) {
      const int64_t i = first + own + e;
      if (i < part.end) sum = op.step(sum, ins[slot(own + e)], i);
      sums[e] = sum;
    }
    typename Op::Gathered tile;
    const auto start = op.combine(all, before(op, sum, tile));
    all = op.combine(all, tile);
    if (task.only_totals) continue;
    PUONE_UNROLL
    for (int e = 0; e < kScanItems; ++e) {
      results[slot(own + e)] = op.result(op.combine(start, sums[e]));
    }
    __syncthreads();
    PUONE_UNROLL
    for (int e = 0; e < kScanItems; ++e) {
      const uint32_t i = e * kScanThreads + threadIdx.x;
      if (first + i < part.end) task.write(part, first + i, results[slot(i)]);
    }
  }
  if (task.only_totals && threadIdx.x == 0) task.totals[line * task.chunks + index] = all;
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

template <class Op>
void scan(Launch& launch, const puone_scan_args& args) {
  using Gathered = typename Op::Gathered;
  const ScannedSpace space(args);
  const int64_t count = space.along.elements(), lines = space.lines.elements();
  if (count == 0 || lines == 0) return;
  const bool side_by_side =
      space.lines.ndim > 0 && std::abs(space.lines.stride(0)) < std::abs(space.along.stride(0));
  const bool by_thread = kScansByThread<Op> && (side_by_side || count <= kScanShort);
  const int64_t wanted = int64_t{launch.multiprocessors()} * 2048 * 2;
  const int64_t least = by_thread ? 4 * kScanAhead : 4 * kScanTile; // minimum elements per chunk
  int64_t chunks = std::min(wanted / (by_thread ? lines : lines * kScanThreads), count / least);
  if (chunks <= 3) chunks = 1; // not worth reading everything twice
  int64_t chunk = (count + chunks - 1) / chunks;
  if (!by_thread) chunk = (chunk + kScanTile - 1) / kScanTile * kScanTile;
  chunks = (count + chunk - 1) / chunk;

  ScanTask<Op> task{
      launch.resolve(args.in.data),
      {resolveOptional(launch, args.outs[0]), resolveOptional(launch, args.outs[1])},
      args.in_dtype,
      {args.out_dtypes[0], args.out_dtypes[1]},
      count,
      {space.along.stride(0), space.along.stride(1), space.along.stride(2)},
      chunk,
      chunks,
      lines,
      nullptr,
      false,
      Axes<Dimensions::kStrides>(space.lines)};
  const auto kernel = [&] {
    if constexpr (kScansByThread<Op>) {
      if (by_thread) return scanByThread<Op>;
    }
    return scanByBlock<Op>;
  };
  const auto run = [&] {
    const int64_t parts = lines * chunks;
    dialect::start<dialect::Threads::kCooperating>(
        launch.stream(),
        kernel(),
        static_cast<uint32_t>(by_thread ? (parts + kScanThreads - 1) / kScanThreads : parts),
        kScanThreads,
        task);
  };
  if (chunks > 1) {
    task.totals = static_cast<Gathered*>(
        launch.scratch(static_cast<size_t>(lines * chunks) * sizeof(Gathered)));
    task.only_totals = true;
    run();
    blocks(launch, lines, chunks, ScanTotals<Op>{task.totals, chunks});
    task.only_totals = false;
  }
  run();
}

} // namespace detail
} // namespace puone::kernels::PUONE_ISA
