// SPDX-License-Identifier: BSD-3-Clause
// Reductions on a device. Where the dense dimension is reduced, a team of threads computes an
// output: part of a warp, a block, or (for an output in several chunks) many blocks. Else
// neighbouring threads compute neighbouring outputs (each a strip of them, where these are dense),
// and several threads of a block share the rows of an output. If many blocks work on one output, a
// second launch combines their results.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "kernels/reduce.h"
#include "kernels/simt/axes.h"
#include "kernels/simt/blocks.h"
#include "kernels/simt/cast.h"
#include "kernels/simt/runs.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {
namespace detail {

constexpr uint32_t kReduceThreads = 256;
/// Strided elements that a thread has in flight.
constexpr int kReduceStrided = 8;
/// Rows of a strip that a thread has in flight.
constexpr int kStripRows = 4;
/// Parts of an output that a thread has in flight.
constexpr int kPartsInFlight = 8;
/// Runs of InMemory<T>::kRun elements that a thread has in flight, as far as registers go.
template <class R>
constexpr int kReduceRuns = 4;
template <>
constexpr int kReduceRuns<Moments<float>> = 2;
/// Which reductions have kernels for runs, and for strips.
template <class R>
constexpr bool kReducesRuns = InMemory<typename R::In>::kRun > 1;
template <class R>
constexpr bool kReducesStrips = false;
template <class Op>
constexpr bool kReducesStrips<Fold<Op>> = InMemory<typename Op::In>::kRun == 8;
/// Outputs of a strip: 16 bytes, where elements are not smaller than 16 bits.
constexpr int kShortStrip = 4, kLongStrip = 8;

/// Elements read by a thread: element e of run r has position first + r * step + e.
template <class T, int kRuns, int kRun>
struct Taken {
  T x[kRuns][kRun];
  int64_t first, step;
};

// ---- how each kind adds elements ----

template <class Op, class T, int kRuns, int kRun>
PUONE_DEVICE void take(
    const Fold<Op>& fold, const Taken<T, kRuns, kRun>& taken, typename Op::Wide& all) {
  typename Op::Lane lane = fold.op.identity();
  PUONE_UNROLL
  for (int r = 0; r < kRuns; ++r) {
    PUONE_UNROLL
    for (int e = 0; e < kRun; ++e) lane = fold.op.step(lane, taken.x[r][e]);
  }
  all = fold.combine(all, cast<typename Op::Wide>(lane));
}

template <class Op, class T, int kRuns, int kRun>
PUONE_DEVICE void take(
    const Extreme<Op>& /*extreme*/, const Taken<T, kRuns, kRun>& taken, Found<T>& all) {
  PUONE_UNROLL
  for (int r = 0; r < kRuns; ++r) {
    PUONE_UNROLL
    for (int e = 0; e < kRun; ++e) {
      if (all.position < 0 || Op::better(taken.x[r][e], all.value)) {
        all = {taken.x[r][e], taken.first + r * taken.step + e};
      }
    }
  }
}

template <class T, int kRuns, int kRun>
PUONE_DEVICE void take(
    const Moments<T>& moments,
    const Taken<T, kRuns, kRun>& taken,
    typename Moments<T>::Gathered& all) {
  T middle = 0, off = 0, squares = 0;
  PUONE_UNROLL
  for (int r = 0; r < kRuns; ++r) {
    PUONE_UNROLL
    for (int e = 0; e < kRun; ++e) middle += taken.x[r][e];
  }
  middle /= T(kRuns * kRun);
  PUONE_UNROLL
  for (int r = 0; r < kRuns; ++r) {
    PUONE_UNROLL
    for (int e = 0; e < kRun; ++e) {
      const T d = taken.x[r][e] - middle;
      off += d;
      squares += d * d;
    }
  }
  all = moments.combine(all, moments.gathered(kRuns * kRun, middle, off, squares));
}

template <class R, class Gathered>
PUONE_DEVICE Gathered join(const R& op, const Gathered& a, const Gathered& b) {
  return op.combine(a, b);
}
/// Combines two threads, whose elements are interleaved: neither comes first.
template <class Op, class T>
PUONE_DEVICE Found<T> join(const Extreme<Op>& op, const Found<T>& a, const Found<T>& b) {
  return b.position < a.position ? op.combine(b, a) : op.combine(a, b);
}

// ---- device code ----

template <class R>
struct Reduction {
  using Gathered = typename R::Gathered;

  R op;
  const unsigned char* in;
  unsigned char* outs[2];
  int32_t in_dtype;
  int32_t out_dtypes[2];
  int64_t outputs, count; // elements of an output
  int64_t chunk, chunks;  // elements of a chunk, chunks of an output
  Gathered* parts;        // per output and chunk, if outputs have several chunks
  uint32_t team;          // threads that share an output, or a chunk of it
  int64_t columns;        // neighbouring outputs per block
  bool across;
  int64_t row, within;  // elements of a row of the reduced dimensions; their stride
  int32_t outer_ndim;   // dimensions outside of rows
  int64_t outer_stride; // of the first of them
  Axes<1> outer;        // all of them
  Axes<Dimensions::kStrides> kept;

  /// Adds the runs at begin, begin + step, ... that start before end. With kAcross, the elements
  /// of a run belong to different outputs: all[e] gets those with index e.
  template <int kRuns, int kRun, bool kAcross = false>
  PUONE_DEVICE void gather(
      const unsigned char* from, int64_t begin, int64_t end, int64_t step, Gathered* all) const {
    int64_t first = begin;
    if (outer_ndim <= 1) {
      // Moves from row to row without divisions: a step is some rows and some elements.
      int64_t in_row = first, row_number = 0, step_in_row = step, step_rows = 0;
      if (outer_ndim == 1) {
        row_number = first / row;
        in_row = first - row_number * row;
        step_rows = step / row;
        step_in_row = step - step_rows * row;
      }
      PUONE_ROLLED
      for (; first + (kRuns - 1) * step < end; first += kRuns * step) {
        const unsigned char* at[kRuns];
        PUONE_UNROLL
        for (int r = 0; r < kRuns; ++r) {
          at[r] = from + in_row * within + row_number * outer_stride;
          in_row += step_in_row;
          row_number += step_rows;
          if (outer_ndim == 1 && in_row >= row) {
            in_row -= row;
            ++row_number;
          }
        }
        takeFrom<kRuns, kRun, kAcross>(at, first, step, all);
      }
    }
    // The rest, and rows in several dimensions.
    PUONE_ROLLED
    for (; first < end; first += step) {
      const int64_t row_number = outer_ndim == 0 ? 0 : first / row;
      const unsigned char* const at[] = {
          from + (first - row_number * row) * within + outer.offset(row_number)};
      takeFrom<1, kRun, kAcross>(at, first, step, all);
    }
  }

  template <int kRuns, int kRun, bool kAcross>
  PUONE_DEVICE void takeFrom(
      const unsigned char* const (&at)[kRuns], int64_t first, int64_t step, Gathered* all) const {
    Taken<typename R::In, kRuns, kRun> taken;
    taken.first = first;
    taken.step = step;
    if constexpr (kRun > 1) {
      readRuns(taken.x, at, in_dtype);
    } else {
      readElements(taken.x, at, in_dtype);
    }
    if constexpr (kAcross) {
      PUONE_UNROLL
      for (int e = 0; e < kRun; ++e) {
        Taken<typename R::In, kRuns, 1> one;
        one.first = first;
        one.step = step;
        PUONE_UNROLL
        for (int r = 0; r < kRuns; ++r) one.x[r][0] = taken.x[r][e];
        take(op, one, all[e]);
      }
    } else {
      take(op, taken, *all);
    }
  }

  PUONE_DEVICE void write(int64_t output, const Gathered& all) const {
    int64_t offsets[Dimensions::kStrides] = {};
    kept.add(output, offsets);
    writeResult(offsets, op.finish(all, count));
  }

  template <class A>
  PUONE_DEVICE void writeResult(const int64_t* offsets, const A& result) const {
    storeAs(outs[0] + offsets[1], out_dtypes[0], result);
  }
  template <class A, class B>
  PUONE_DEVICE void writeResult(const int64_t* offsets, const Pair<A, B>& result) const {
    if (outs[0] != nullptr) storeAs(outs[0] + offsets[1], out_dtypes[0], result.first);
    if (outs[1] == nullptr) return;
    if constexpr (std::is_same_v<B, int64_t>) { // a position
      store(outs[1] + offsets[2], result.second);
    } else {
      storeAs(outs[1] + offsets[2], out_dtypes[1], result.second);
    }
  }

  /// Stores the result of a chunk.
  PUONE_DEVICE void done(int64_t output, int64_t index, const Gathered& all) const {
    if (parts == nullptr) {
      write(output, all);
    } else {
      parts[output * chunks + index] = all;
    }
  }
};

/// Combines the threads of a team; the first thread gets the result.
template <class R>
PUONE_DEVICE typename R::Gathered joinTeam(const R& op, uint32_t team, typename R::Gathered all) {
  const auto combine = [&](const auto& a, const auto& b) { return join(op, a, b); };
  if (team > kWarpThreads) return Block().all(all, combine);
  for (int bits = static_cast<int>(team) / 2; bits > 0; bits /= 2) {
    all = combine(all, shuffleXor(all, bits));
  }
  return all;
}

/// Combines the threads of a team, which are `stride` apart in their block, for each of kRun
/// outputs; the first one, of lane 0, gets the results. `shared` has room for kRun values of each
/// thread of the block.
template <class R, int kRun>
PUONE_DEVICE void joinApart(
    const Reduction<R>& task,
    typename R::Gathered* shared,
    uint32_t lane,
    uint32_t stride,
    typename R::Gathered (&all)[kRun]) {
  for (uint32_t half = task.team / 2; half > 0; half /= 2) {
    PUONE_UNROLL
    for (int e = 0; e < kRun; ++e) shared[e * kReduceThreads + threadIdx.x] = all[e];
    __syncthreads();
    if (lane < half) {
      const typename R::Gathered* const others = shared + threadIdx.x + half * stride;
      PUONE_UNROLL
      for (int e = 0; e < kRun; ++e) all[e] = join(task.op, all[e], others[e * kReduceThreads]);
    }
    __syncthreads();
  }
}

/// The part of the work that a thread's team computes.
struct Chunk {
  template <class R>
  PUONE_DEVICE Chunk(
      const Reduction<R>& task, int64_t strip_or_number, int64_t output_in_strip, int run = 1) {
    const int64_t number = task.chunks == 1 ? strip_or_number : strip_or_number / task.chunks;
    index = strip_or_number - number * task.chunks;
    output = (number * task.columns + output_in_strip) * run;
    exists = output < task.outputs;
    begin = index * task.chunk;
    end = begin + task.chunk < task.count ? begin + task.chunk : task.count;
  }

  int64_t output, index, begin, end;
  bool exists;
};

/// Runs of dense elements: one team per chunk.
template <class R>
PUONE_GLOBAL(kReduceThreads, 3)
void reduceRuns(Reduction<R> task) {
  constexpr int kRun = InMemory<typename R::In>::kRun;
  const uint32_t lane = threadIdx.x % task.team;
  const Chunk chunk(
      task,
      static_cast<int64_t>(blockIdx.x) * (blockDim.x / task.team) + threadIdx.x / task.team,
      0);
  auto all = task.op.nothing();
  if (chunk.exists) {
    const unsigned char* const from = task.in + task.kept.offset(chunk.output);
    const int64_t whole = chunk.begin + (chunk.end - chunk.begin) / kRun * kRun;
    task.template gather<kReduceRuns<R>, kRun>(
        from, chunk.begin + lane * kRun, whole, static_cast<int64_t>(task.team) * kRun, &all);
    task.template gather<1, 1>(from, whole + lane, chunk.end, task.team, &all);
  }
  all = joinTeam(task.op, task.team, all);
  if (chunk.exists && lane == 0) task.done(chunk.output, chunk.index, all);
}

/// Single elements: neighbouring threads take neighbouring elements of the reduced dimensions or,
/// if `across`, neighbouring outputs; then the team of an output takes its rows in turns.
template <class R>
PUONE_GLOBAL(kReduceThreads, 3)
void reduceElements(Reduction<R> task) {
  using Gathered = typename R::Gathered;
  PUONE_SHARED SharedArray<Gathered, kReduceThreads> memory;
  Gathered* const shared = memory.data();
  const bool across = task.across;
  const auto columns = static_cast<uint32_t>(task.columns);
  const uint32_t lane = across ? threadIdx.x / columns : threadIdx.x % task.team;
  const Chunk chunk(
      task,
      across
          ? static_cast<int64_t>(blockIdx.x)
          : static_cast<int64_t>(blockIdx.x) * (blockDim.x / task.team) + threadIdx.x / task.team,
      across ? threadIdx.x % columns : 0);
  Gathered all[] = {task.op.nothing()};
  if (chunk.exists) {
    task.template gather<kReduceStrided, 1>(
        task.in + task.kept.offset(chunk.output), chunk.begin + lane, chunk.end, task.team, all);
  }
  joinApart(task, shared, lane, across ? columns : 1, all);
  if (chunk.exists && lane == 0) task.done(chunk.output, chunk.index, all[0]);
}

/// Strips of outputs that are dense in memory: a thread has kRun of them.
template <class R, int kRun>
PUONE_GLOBAL(kReduceThreads, 3)
void reduceStrips(Reduction<R> task) {
  using Gathered = typename R::Gathered;
  PUONE_SHARED SharedArray<Gathered, kReduceThreads * kRun> memory;
  Gathered* const shared = memory.data();
  const auto columns = static_cast<uint32_t>(task.columns);
  const uint32_t lane = threadIdx.x / columns;
  const Chunk chunk(task, blockIdx.x, threadIdx.x % columns, kRun);
  Gathered all[kRun];
  PUONE_UNROLL
  for (int e = 0; e < kRun; ++e) all[e] = task.op.nothing();
  if (chunk.exists) {
    task.template gather<kStripRows, kRun, true>(
        task.in + task.kept.offset(chunk.output), chunk.begin + lane, chunk.end, task.team, all);
  }
  joinApart(task, shared, lane, columns, all);
  if (!chunk.exists || lane != 0) return;
  PUONE_UNROLL
  for (int e = 0; e < kRun; ++e) task.done(chunk.output + e, chunk.index, all[e]);
}

/// The second stage: one team, a warp or a block, per output.
template <class R>
PUONE_GLOBAL(kReduceThreads, 1)
void reduceParts(Reduction<R> task) {
  const int64_t output = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / task.team;
  const uint32_t lane = threadIdx.x % task.team;
  auto all = task.op.nothing();
  if (output < task.outputs) {
    const auto* const parts = task.parts + output * task.chunks;
    PUONE_ROLLED
    for (int64_t first = lane; first < task.chunks; first += kPartsInFlight * task.team) {
      typename R::Gathered taken[kPartsInFlight];
      PUONE_UNROLL
      for (int p = 0; p < kPartsInFlight; ++p) {
        const int64_t c = first + p * task.team;
        taken[p] = c < task.chunks ? parts[c] : task.op.nothing();
      }
      PUONE_UNROLL
      for (int p = 0; p < kPartsInFlight; ++p) all = join(task.op, all, taken[p]);
    }
  }
  all = joinTeam(task.op, task.team, all);
  if (output < task.outputs && lane == 0) task.write(output, all);
}

// ---- the launch ----

inline bool isAligned(const Dimensions& dims, int32_t first, int64_t alignment) {
  for (int32_t d = first; d < dims.ndim; ++d) {
    if (dims.strides[0][d] % alignment != 0) return false;
  }
  return true;
}

/// Whether runs of kRun elements can be read as vectors: each output's elements are contiguous.
template <class T>
bool hasRuns(const puone_reduce_args& args, const ReducedSpace& space) {
  constexpr int64_t kRun = InMemory<T>::kRun;
  const int64_t size = elementSize(args.in_dtype);
  const int64_t alignment = std::min<int64_t>(kRun * size, 16);
  if (!isInMemory<T>(args.in_dtype) || space.reduced.stride(0) != size) return false;
  if (reinterpret_cast<uintptr_t>(args.in.data) % alignment != 0) return false;
  if (space.reduced.ndim > 1 && space.reduced.sizes[0] % kRun != 0) return false;
  return isAligned(space.reduced, 1, alignment) && isAligned(space.kept, 0, alignment);
}

/// The number of outputs that can be read as one vector, or 1. Strips of 32 bytes were not faster
/// than single elements (measured on an H200).
template <class T>
int stripOf(const puone_reduce_args& args, const ReducedSpace& space) {
  const int64_t size = elementSize(args.in_dtype);
  const int strip = size > 2 ? kShortStrip : kLongStrip;
  const int64_t alignment = strip * size;
  if (alignment > 16 || !isInMemory<T>(args.in_dtype) || space.kept.stride(0) != size) return 1;
  if (reinterpret_cast<uintptr_t>(args.in.data) % alignment != 0) return 1;
  const bool fits = space.kept.sizes[0] % strip == 0 && isAligned(space.kept, 1, alignment) &&
                    isAligned(space.reduced, 0, alignment);
  return fits ? strip : 1;
}

/// How the outputs are spread over threads.
struct Spread {
  uint32_t team = 1, threads = kReduceThreads;
  int64_t chunks = 1, chunk;
};

/// `share`: wanted elements per thread. `wanted`: threads that fill the device.
inline Spread spreadAlong(const ReducedSpace& space, int64_t share, int64_t wanted) {
  Spread spread;
  const auto each = [&] { return space.count / spread.team; }; // elements per thread
  while (spread.team < kReduceThreads &&
         (each() > 4 * share || (each() > share && space.outputs * spread.team < wanted))) {
    spread.team *= 2;
  }
  if (spread.team > kWarpThreads) spread.threads = spread.team;
  if (spread.team == kReduceThreads) {
    spread.chunks = std::min(wanted / (space.outputs * spread.team), each() / share);
  }
  return spread;
}

/// `outputs`: strips, or single ones; `least`: of those that neighbouring threads have.
inline Spread spreadAcross(
    int64_t outputs, int64_t count, int64_t least, int64_t share, int64_t wanted) {
  Spread spread;
  const auto columns = [&] { return kReduceThreads / spread.team; };
  const auto threads = [&] { return (outputs + columns() - 1) / columns() * kReduceThreads; };
  // Enlarge the team that shares the rows, as long as `least` neighbours stay in a row.
  const auto wider = [&] { return columns() > least || columns() / 2 >= outputs; };
  while (columns() > 1 && wider() && spread.team < count &&
         (threads() < wanted || columns() / 2 >= outputs)) {
    spread.team *= 2;
  }
  spread.chunks = std::min(wanted / threads(), count / (spread.team * share));
  return spread;
}

template <class R>
void reduce(Launch& launch, const puone_reduce_args& args) {
  using In = typename R::In;
  constexpr int64_t kRun = InMemory<In>::kRun;
  const ReducedSpace space(args, kCountsPositions<R>);
  if (space.outputs == 0) return;
  const bool across = space.kept.ndim > 0 && space.reduced.ndim > 0 &&
                      std::abs(space.kept.stride(0)) < std::abs(space.reduced.stride(0));
  const bool packed = kReducesRuns<R> && !across && hasRuns<In>(args, space);
  // As many as can be resident: all start at once and end together (measured on an H100).
  const int64_t wanted = int64_t{launch.multiprocessors()} * 2048;
  const int run = across && kReducesStrips<R> ? stripOf<In>(args, space) : 1;
  Spread spread = across
                      ? spreadAcross(
                            space.outputs / run,
                            space.count,
                            run > 1 ? kWarpThreads / 2 : kWarpThreads,
                            run > 1 ? kStripRows : kReduceStrided,
                            wanted)
                      : spreadAlong(space, packed ? kReduceRuns<R> * kRun : kReduceStrided, wanted);
  spread.chunks = std::max<int64_t>(spread.chunks, 1);
  spread.chunk = (space.count + spread.chunks - 1) / spread.chunks;
  spread.chunk = std::max<int64_t>((spread.chunk + kRun - 1) / kRun * kRun, 1);
  spread.chunks = std::max<int64_t>((space.count + spread.chunk - 1) / spread.chunk, 1);
  using Gathered = typename R::Gathered;
  const Dimensions& reduced = space.reduced;
  Dimensions outer;
  for (int32_t d = 1; d < reduced.ndim; ++d) outer.add(reduced.sizes[d], {reduced.strides[0][d]});
  const int64_t columns = across ? kReduceThreads / spread.team : 1;
  Reduction<R> task{
      R(args),
      resolveOptional(launch, args.in),
      {resolveOptional(launch, args.outs[0]), resolveOptional(launch, args.outs[1])},
      args.in_dtype,
      {args.out_dtypes[0], args.out_dtypes[1]},
      space.outputs,
      space.count,
      spread.chunk,
      spread.chunks,
      spread.chunks == 1
          ? nullptr
          : static_cast<Gathered*>(launch.scratch(
                static_cast<size_t>(space.outputs * spread.chunks) * sizeof(Gathered))),
      spread.team,
      columns,
      across,
      std::max<int64_t>(reduced.length(), 1),
      reduced.stride(0),
      outer.ndim,
      outer.stride(0),
      Axes<1>(outer),
      Axes<Dimensions::kStrides>(space.kept)};
  const auto start = [&](void (*kernel)(Reduction<R>), int64_t items, int64_t per_block) {
    dialect::start<dialect::Threads::kCooperating>(
        launch.stream(),
        kernel,
        static_cast<uint32_t>((items + per_block - 1) / per_block),
        spread.threads,
        task);
  };
  const auto kernel = [&] {
    if constexpr (kReducesStrips<R>) {
      if (run == kShortStrip) return reduceStrips<R, kShortStrip>;
      if (run == kLongStrip) return reduceStrips<R, kLongStrip>;
    }
    if constexpr (kReducesRuns<R>) {
      if (packed) return reduceRuns<R>;
    }
    return reduceElements<R>;
  };
  const int64_t blocks = (space.outputs / run + columns - 1) / columns;
  start(kernel(), blocks * spread.chunks, across ? 1 : spread.threads / spread.team);
  if (spread.chunks > 1) {
    spread.threads = kReduceThreads;
    task.team = spread.chunks > 4 * kWarpThreads ? kReduceThreads : kWarpThreads;
    start(reduceParts<R>, space.outputs, kReduceThreads / task.team);
  }
}

} // namespace detail
} // namespace puone::kernels::PUONE_ISA
