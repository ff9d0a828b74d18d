// SPDX-License-Identifier: BSD-3-Clause
// Attention on a device. A block has a tile of the rows of one result and goes through tiles of the
// rows that it depends on: a tile of scores, a few of which each thread has in registers, becomes
// weights in shared memory, with which the rows of another matrix are added up.
//
// Backwards the gradients of queries, keys and values have a kernel each, which computes the scores
// again: no two blocks write the same memory, and the order of the sums depends only on the sizes.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/attention.h"
#include "kernels/blocks.h"
#include "kernels/simt/stored.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {
namespace attending {

/// A tile has this many threads in each direction.
constexpr int kSide = 16;
constexpr int kTileThreads = kSide * kSide;
/// Columns of two tiles' rows that are in shared memory at a time.
constexpr int kDepth = 16;

template <class T>
struct TileSize {
  static constexpr int kPart = sizeof(T) == 8 ? 2 : 4; // rows of a thread, and columns
  static constexpr int kRows = kSide * kPart;
  static constexpr int kValueRows = 2 * kPart; // in shared memory at a time
};

template <class T>
struct TileMemory {
  static constexpr int kRows = TileSize<T>::kRows;
  T left[kDepth][kRows + 1];
  T right[kDepth][kRows + 1];
  T weights[kRows][kRows + 1];
  T values[TileSize<T>::kValueRows][PUONE_ATTENTION_MAX_SIZE];
};

/// Rows of a head. What is outside of them is zero.
template <class T>
struct TileRows {
  Stored<T> stored;
  Matrix matrix;
  int64_t count;
  int64_t columns;

  PUONE_DEVICE T at(int64_t row, int64_t column) const {
    return row < count && column < columns ? stored.load(matrix.row(row), column) : T(0);
  }
};

/// The place of a thread in a tile: it has rows down + kSide * a and columns across + kSide * b.
struct Place {
  int down;
  int across;
};

PUONE_DEVICE inline Place place() {
  return {static_cast<int>(threadIdx.x) / kSide, static_cast<int>(threadIdx.x) % kSide};
}

/// Adds the products of the rows of two tiles, from `first` and `other_first` on.
template <class T, int kPart = TileSize<T>::kPart>
PUONE_DEVICE void addProducts(
    const TileRows<T>& rows,
    int64_t first,
    const TileRows<T>& others,
    int64_t other_first,
    TileMemory<T>& memory,
    T (&sums)[kPart][kPart]) {
  const Place at = place();
  for (int64_t column = 0; column < rows.columns; column += kDepth) {
    for (int i = static_cast<int>(threadIdx.x); i < TileSize<T>::kRows * kDepth;
         i += kTileThreads) {
      const int r = i / kDepth, e = i % kDepth;
      memory.left[e][r] = rows.at(first + r, column + e);
      memory.right[e][r] = others.at(other_first + r, column + e);
    }
    __syncthreads();
    PUONE_ROLLED
    for (int e = 0; e < kDepth; ++e) {
      T left[kPart], right[kPart];
      PUONE_UNROLL
      for (int a = 0; a < kPart; ++a) {
        left[a] = memory.left[e][at.down + kSide * a];
        right[a] = memory.right[e][at.across + kSide * a];
      }
      PUONE_UNROLL
      for (int a = 0; a < kPart; ++a) {
        PUONE_UNROLL
        for (int b = 0; b < kPart; ++b) sums[a][b] += left[a] * right[b];
      }
    }
    __syncthreads();
  }
}

/// Adds the rows of `values` from `first` on, weighted. A thread has the columns
/// across + kSide * c.
template <class T, int kColumns, int kPart = TileSize<T>::kPart>
PUONE_DEVICE void addWeighted(
    const TileRows<T>& values, int64_t first, TileMemory<T>& memory, T (&sums)[kPart][kColumns]) {
  constexpr int kValueRows = TileSize<T>::kValueRows, kWidth = kSide * kColumns;
  const Place at = place();
  __syncthreads(); // the weights are there
  for (int start = 0; start < TileSize<T>::kRows; start += kValueRows) {
    for (int i = static_cast<int>(threadIdx.x); i < kValueRows * kWidth; i += kTileThreads) {
      memory.values[i / kWidth][i % kWidth] = values.at(first + start + i / kWidth, i % kWidth);
    }
    __syncthreads();
    PUONE_ROLLED
    for (int k = 0; k < kValueRows; ++k) {
      T weights[kPart];
      PUONE_UNROLL
      for (int a = 0; a < kPart; ++a) weights[a] = memory.weights[at.down + kSide * a][start + k];
      PUONE_UNROLL
      for (int c = 0; c < kColumns; ++c) {
        const T value = memory.values[k][at.across + kSide * c];
        PUONE_UNROLL
        for (int a = 0; a < kPart; ++a) sums[a][c] += weights[a] * value;
      }
    }
    __syncthreads();
  }
}

/// Combines the values of the threads that share a row of a tile.
template <class T, class Combine>
PUONE_DEVICE T alongRow(T value, const Combine& combine) {
  PUONE_UNROLL
  for (int bits = kSide / 2; bits > 0; bits /= 2) value = combine(value, shuffleXor(value, bits));
  return value;
}

/// A problem as seen by one head of one batch index.
template <class T>
struct HeadOfProblem {
  const Problem<T>& problem;
  int64_t batch;
  int64_t head;
  Mask mask;

  PUONE_DEVICE HeadOfProblem(const Problem<T>& problem, int64_t batch, int64_t head)
      : problem(problem), batch(batch), head(head), mask(problem.mask(batch, head)) {}

  PUONE_DEVICE TileRows<T> ofQueries(const Heads& heads, int64_t columns) const {
    return {{problem.dtype}, heads.matrix(batch, head), problem.queries, columns};
  }
  PUONE_DEVICE TileRows<T> ofKeys(const Heads& heads, int64_t columns) const {
    return {{problem.dtype}, heads.matrix(batch, problem.keyHead(head)), problem.keys, columns};
  }

  /// The score of a product of a query and a key; minus infinity where there is none.
  PUONE_DEVICE T score(int64_t query, int64_t key, T product) const {
    const bool seen =
        query < problem.queries && key < problem.keys && !(problem.causal && key > query);
    if (!seen) return kNothing<T>;
    T result = product * problem.scale;
    if (mask.data != nullptr) {
      mask.visit([&]<class M>(Type<M>) { result += biasOf<M, T>(mask.at(query, key)); });
    }
    return result;
  }

  /// What dropout multiplies a weight by.
  PUONE_DEVICE T factor(int64_t query, int64_t key) const {
    if (!problem.dropout.exists()) return T(1);
    const PhiloxBlock block = problem.dropout.bits(problem.row(batch, head, query), key / 4);
    const int64_t word = key % 4;
    const uint32_t low = word % 2 == 0 ? block.words[0] : block.words[1];
    const uint32_t high = word % 2 == 0 ? block.words[2] : block.words[3];
    return problem.dropout.template factor<T>(word < 2 ? low : high);
  }
};

template <class T, int kColumns>
PUONE_GLOBAL(kTileThreads, 1)
void forwardKernel(Problem<T> p, int64_t tiles) {
  constexpr int kPart = TileSize<T>::kPart, kRows = TileSize<T>::kRows;
  PUONE_SHARED TileMemory<T> memory;
  const int64_t index = blockIdx.x, first = index % tiles * kRows;
  const HeadOfProblem<T> head(p, index / tiles / p.heads, index / tiles % p.heads);
  const TileRows<T> queries = head.ofQueries(p.query, p.head_size);
  const TileRows<T> keys = head.ofKeys(p.key, p.head_size);
  const TileRows<T> values = head.ofKeys(p.value, p.value_size);
  const Place at = place();
  T out[kPart][kColumns] = {}, top[kPart], sum[kPart] = {};
  for (int a = 0; a < kPart; ++a) top[a] = kNothing<T>;
  const int64_t end = p.keysBefore(first + kRows);
  for (int64_t key = 0; key < end; key += kRows) {
    T scores[kPart][kPart] = {};
    addProducts<T>(queries, first, keys, key, memory, scores);
    PUONE_UNROLL
    for (int a = 0; a < kPart; ++a) {
      const int64_t row = first + at.down + kSide * a;
      T high = top[a];
      PUONE_UNROLL
      for (int b = 0; b < kPart; ++b) {
        scores[a][b] = head.score(row, key + at.across + kSide * b, scores[a][b]);
        high = scores[a][b] > high ? scores[a][b] : high;
      }
      high = alongRow(high, [](T x, T y) { return x > y ? x : y; });
      // Without any score yet, exponentials are those of minus infinity.
      const T base = high == kNothing<T> ? T(0) : high;
      const T change = exponentialOrNan(top[a] - base);
      T added = 0;
      PUONE_UNROLL
      for (int b = 0; b < kPart; ++b) {
        const int column = at.across + kSide * b;
        const T weight = exponentialOrNan(scores[a][b] - base);
        added += weight;
        memory.weights[at.down + kSide * a][column] = weight * head.factor(row, key + column);
      }
      sum[a] = sum[a] * change + alongRow(added, [](T x, T y) { return x + y; });
      top[a] = high;
      PUONE_UNROLL
      for (int c = 0; c < kColumns; ++c) out[a][c] *= change;
    }
    addWeighted<T, kColumns>(values, key, memory, out);
  }
  const Matrix result = p.out.matrix(head.batch, head.head);
  PUONE_UNROLL
  for (int a = 0; a < kPart; ++a) {
    const int64_t row = first + at.down + kSide * a;
    if (row >= p.queries) continue;
    const T factor = sum[a] == 0 ? T(0) : T(1) / sum[a];
    PUONE_UNROLL
    for (int c = 0; c < kColumns; ++c) {
      const int64_t column = at.across + kSide * c;
      if (column < p.value_size) values.stored.store(result.row(row), column, out[a][c] * factor);
    }
    if (at.across == 0) {
      p.logsumexp[p.row(head.batch, head.head, row)] = top[a] + std::log(sum[a]);
    }
  }
}

enum class Gradient {
  kQuery,
  kKey,
  kValue
};

/// `means`: for each query the sum of grad_out * out.
template <class T, int kColumns, Gradient kOf>
PUONE_GLOBAL(kTileThreads, 1)
void gradientKernel(Problem<T> p, const T* means, int64_t tiles) {
  constexpr int kPart = TileSize<T>::kPart, kRows = TileSize<T>::kRows;
  constexpr bool kOfQuery = kOf == Gradient::kQuery;
  PUONE_SHARED TileMemory<T> memory;
  const int64_t index = blockIdx.x, first = index % tiles * kRows;
  const int64_t heads = kOfQuery ? p.heads : p.key_heads;
  const int64_t batch = index / tiles / heads, own = index / tiles % heads;
  const int64_t sharing = p.heads / heads; // heads of queries that the rows belong to
  const Place at = place();
  T sums[kPart][kColumns] = {};
  for (int64_t of_group = 0; of_group < sharing; ++of_group) {
    const HeadOfProblem<T> head(p, batch, own * sharing + of_group);
    const TileRows<T> queries = head.ofQueries(p.query, p.head_size);
    const TileRows<T> keys = head.ofKeys(p.key, p.head_size);
    const TileRows<T> grads_out = head.ofQueries(p.grad_out, p.value_size);
    const TileRows<T> values = head.ofKeys(p.value, p.value_size);
    const int64_t begin = !kOfQuery && p.causal ? first : 0;
    const int64_t end = kOfQuery ? p.keysBefore(first + kRows) : p.queries;
    for (int64_t other = begin; other < end; other += kRows) {
      T scores[kPart][kPart] = {}, grads[kPart][kPart] = {};
      addProducts<T>(
          kOfQuery ? queries : keys, first, kOfQuery ? keys : queries, other, memory, scores);
      if constexpr (kOf != Gradient::kValue) {
        addProducts<T>(
            kOfQuery ? grads_out : values,
            first,
            kOfQuery ? values : grads_out,
            other,
            memory,
            grads);
      }
      PUONE_UNROLL
      for (int a = 0; a < kPart; ++a) {
        PUONE_UNROLL
        for (int b = 0; b < kPart; ++b) {
          const int64_t row = first + at.down + kSide * a, column = other + at.across + kSide * b;
          const int64_t query = kOfQuery ? row : column, key = kOfQuery ? column : row;
          T weight = 0;
          if (query < p.queries) {
            const int64_t saved = p.row(head.batch, head.head, query);
            const T logsumexp = p.logsumexp[saved];
            weight = exponentialOrNan(
                head.score(query, key, scores[a][b]) -
                (logsumexp == kNothing<T> ? T(0) : logsumexp));
            const T factor = head.factor(query, key);
            weight *= kOf == Gradient::kValue ? factor : grads[a][b] * factor - means[saved];
          }
          memory.weights[at.down + kSide * a][at.across + kSide * b] = weight;
        }
      }
      const TileRows<T>& added = kOfQuery ? keys : kOf == Gradient::kKey ? queries : grads_out;
      addWeighted<T, kColumns>(added, other, memory, sums);
    }
  }
  const Heads& result = kOfQuery ? p.grad_query : kOf == Gradient::kKey ? p.grad_key : p.grad_value;
  const Matrix matrix = result.matrix(batch, own);
  const T scale = kOf == Gradient::kValue ? T(1) : p.scale;
  PUONE_UNROLL
  for (int a = 0; a < kPart; ++a) {
    const int64_t row = first + at.down + kSide * a;
    if (row >= (kOfQuery ? p.queries : p.keys)) continue;
    PUONE_UNROLL
    for (int c = 0; c < kColumns; ++c) {
      const int64_t column = at.across + kSide * c;
      if (column >= (kOf == Gradient::kValue ? p.value_size : p.head_size)) continue;
      const T value = sums[a][c] * scale;
      if constexpr (kOfQuery) {
        store(matrix.row(row) + column * static_cast<int64_t>(sizeof(T)), value);
      } else {
        const Stored<T> stored{{p.dtype}};
        stored.store(matrix.row(row), column, value);
      }
    }
  }
}

/// For each query the sum of grad_out * out, in the order of addProducts(): nothing is left of the
/// difference to the gradient of a weight where a query sees one key.
template <class T>
struct Means {
  PUONE_DEVICE void operator()(int64_t row) const {
    const int64_t head = row / p.queries, query = row % p.queries;
    const Stored<T> stored{{p.dtype}};
    const unsigned char* const grad = p.grad_out.matrix(head / p.heads, head % p.heads).row(query);
    const unsigned char* const out = p.out.matrix(head / p.heads, head % p.heads).row(query);
    T sum = 0;
    for (int64_t i = 0; i < p.value_size; ++i) sum += stored.load(grad, i) * stored.load(out, i);
    means[row] = sum;
  }

  Problem<T> p;
  T* means;
};

/// Calls body with std::integral_constant of a thread's columns, for rows of that size.
template <class Body>
void withColumns(int64_t size, const Body& body) {
  if (size <= 4 * kSide) return body(std::integral_constant<int, 4>());
  if (size <= 8 * kSide) return body(std::integral_constant<int, 8>());
  body(std::integral_constant<int, PUONE_ATTENTION_MAX_SIZE / kSide>());
}

template <class T, Gradient kOf>
void startGradient(
    Launch& launch, const Problem<T>& problem, const T* means, int64_t rows, int64_t heads) {
  const int64_t tiles = (rows + TileSize<T>::kRows - 1) / TileSize<T>::kRows;
  const int64_t columns = kOf == Gradient::kValue ? problem.value_size : problem.head_size;
  if (tiles == 0 || columns == 0) return;
  withColumns(columns, [&]<int kColumns>(std::integral_constant<int, kColumns>) {
    dialect::start<dialect::Threads::kCooperating>(
        launch.stream(),
        gradientKernel<T, kColumns, kOf>,
        static_cast<uint32_t>(problem.batch * heads * tiles),
        static_cast<uint32_t>(kTileThreads),
        problem,
        means,
        tiles);
  });
}

} // namespace attending

inline void attentionForward(Launch& launch, const puone_attention_args& args) {
  using namespace attending;
  withAttentionType(args, [&]<class E>(Type<E>) {
    using T = RowType<E>;
    recordDrawn(launch, args);
    const Problem<T> problem(launch, args);
    const int64_t tiles = (args.queries + TileSize<T>::kRows - 1) / TileSize<T>::kRows;
    if (tiles == 0) return;
    withColumns(args.value_size, [&]<int kColumns>(std::integral_constant<int, kColumns>) {
      dialect::start<dialect::Threads::kCooperating>(
          launch.stream(),
          forwardKernel<T, kColumns>,
          static_cast<uint32_t>(args.batch * args.heads * tiles),
          static_cast<uint32_t>(kTileThreads),
          problem,
          tiles);
    });
  });
}

inline void attentionBackward(Launch& launch, const puone_attention_args& args) {
  using namespace attending;
  withAttentionType(args, [&]<class E>(Type<E>) {
    using T = RowType<E>;
    const Problem<T> problem(launch, args);
    const int64_t rows = args.batch * args.heads * args.queries;
    T* const means = static_cast<T*>(launch.scratch(static_cast<size_t>(rows + 1) * sizeof(T)));
    map(launch, rows, Means<T>{problem, means});
    if (problem.grad_query.data != nullptr) {
      startGradient<T, Gradient::kQuery>(launch, problem, means, args.queries, args.heads);
    }
    if (problem.grad_key.data != nullptr) {
      startGradient<T, Gradient::kKey>(launch, problem, means, args.keys, args.key_heads);
    }
    if (problem.grad_value.data != nullptr) {
      startGradient<T, Gradient::kValue>(launch, problem, means, args.keys, args.key_heads);
    }
  });
}

} // namespace puone::kernels::PUONE_ISA
