// SPDX-License-Identifier: BSD-3-Clause
// Attention on host cores. Tiles of the scores are kept transposed, a row for each key: the loops
// of the softmax run along queries, and both the scores and their products with other matrices are
// products of factors that lie in memory as they are needed (Gemm::multiplyInPlace).
//
// Forwards, a core has some queries of a head and goes through the keys. Backwards, it has a head
// of the keys and goes through the queries of the heads that share it. The order of the sums
// depends only on the sizes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "kernels/attention.h"
#include "kernels/host/gemm.h"

namespace puone::kernels::PUONE_ISA {
namespace attending {

/// Queries and keys of a tile: multiples of the rows and columns that Gemm computes at a time, and
/// of a Philox block. Two tiles of floats fit the second-level cache with the rows they belong to.
constexpr int64_t kQueries = 96;
constexpr int64_t kKeys = 192;

template <class T>
constexpr int64_t padded(int64_t columns) {
  constexpr int64_t kLanes = Gemm<T>::kLanes;
  return (columns + kLanes - 1) / kLanes * kLanes;
}

/// Rows of a matrix as elements of T, readable up to padded() columns.
template <class T>
struct Rows {
  const T* data;
  int64_t pitch;
};

/// The rows where they are, if they are fit for it, else copied to `buffer`.
template <class E, class T>
Rows<T> rowsOf(const Matrix& matrix, int64_t first, int64_t count, int64_t columns, T* buffer) {
  const int64_t pitch = padded<T>(columns);
  if constexpr (std::is_same_v<E, T>) {
    if (columns == pitch && matrix.row_stride % static_cast<int64_t>(sizeof(T)) == 0) {
      return {
          reinterpret_cast<const T*>(matrix.row(first)),
          matrix.row_stride / static_cast<int64_t>(sizeof(T))};
    }
  }
  const Stored<E, T> stored;
  for (int64_t i = 0; i < count; ++i) {
    const unsigned char* const from = matrix.row(first + i);
    T* const to = buffer + i * pitch;
#pragma GCC ivdep
    for (int64_t j = 0; j < columns; ++j) to[j] = stored.load(from, j);
    for (int64_t j = columns; j < pitch; ++j) to[j] = T(0);
  }
  return {buffer, pitch};
}

/// out[j * pitch + i] = factor * element (first + i, j) for i < count, 0 for other i < pitch.
template <class E, class T>
void transposeRows(
    const Matrix& matrix,
    int64_t first,
    int64_t count,
    int64_t columns,
    T factor,
    T* out,
    int64_t pitch) {
  const Stored<E, T> stored;
  for (int64_t i = 0; i < count; ++i) {
    const unsigned char* const from = matrix.row(first + i);
    for (int64_t j = 0; j < columns; ++j) out[j * pitch + i] = factor * stored.load(from, j);
  }
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = count; i < pitch; ++i) out[j * pitch + i] = T(0);
  }
}

/// Some queries of a head and some keys.
struct Tile {
  int64_t batch;
  int64_t head;
  int64_t query; // the first one
  int64_t queries;
  int64_t key;
  int64_t keys;
  int64_t pitch; // of the transposed scores
};

/// Adds the mask to transposed scores, and takes the keys away that the queries do not see.
template <class T>
void maskScores(const Problem<T>& problem, const Tile& tile, T* scores) {
  if (const Mask mask = problem.mask(tile.batch, tile.head); mask.data != nullptr) {
    mask.visit([&]<class M>(Type<M>) {
      for (int64_t c = 0; c < tile.queries; ++c) {
        const unsigned char* element = mask.at(tile.query + c, tile.key);
        for (int64_t r = 0; r < tile.keys; ++r, element += mask.key_stride) {
          scores[r * tile.pitch + c] += biasOf<M, T>(element);
        }
      }
    });
  }
  if (!problem.causal) return;
  for (int64_t r = std::max<int64_t>(0, tile.query - tile.key); r < tile.keys; ++r) {
    const int64_t before = std::min(tile.key + r - tile.query, tile.queries);
    std::fill_n(scores + r * tile.pitch, before, kNothing<T>);
  }
}

/// Calls f(i, query, factor) for the elements i of a tile of transposed scores, whose memory has a
/// multiple of four keys. `query` counts from the tile's first.
template <class T, class F>
void forDropped(const Problem<T>& problem, const Tile& tile, const F& f) {
  const int64_t row = problem.row(tile.batch, tile.head, tile.query);
  for (int64_t r = 0; r < tile.keys; r += 4) {
#pragma GCC ivdep
    for (int64_t c = 0; c < tile.queries; ++c) {
      const PhiloxBlock block = problem.dropout.bits(row + c, (tile.key + r) / 4);
      for (int64_t k = 0; k < 4; ++k) {
        f((r + k) * tile.pitch + c, c, problem.dropout.template factor<T>(block.words[k]));
      }
    }
  }
}

/// The forward pass of some queries.
template <class E>
class Forward {
  using T = RowType<E>;
  static constexpr int64_t kMost = PUONE_ATTENTION_MAX_SIZE;

 public:
  explicit Forward(const Problem<T>& problem) : problem_(problem) {}

  void run(Tile tile) {
    tile.pitch = padded<T>(tile.queries);
    const Problem<T>& p = problem_;
    const int64_t head = p.keyHead(tile.head);
    const Matrix key = p.key.matrix(tile.batch, head), value = p.value.matrix(tile.batch, head);
    const int64_t width = padded<T>(p.value_size);
    transposeRows<E, T>(
        p.query.matrix(tile.batch, tile.head),
        tile.query,
        tile.queries,
        p.head_size,
        p.scale,
        query_,
        tile.pitch);
    std::fill_n(top_, tile.pitch, kNothing<T>);
    std::fill_n(sum_, tile.pitch, T(0));
    const int64_t end = p.keysBefore(tile.query + tile.queries);
    for (tile.key = 0; tile.key < end; tile.key += kKeys) {
      tile.keys = std::min(kKeys, end - tile.key);
      const Rows<T> keys = rowsOf<E, T>(key, tile.key, tile.keys, p.head_size, rows_);
      Gemm<T>::multiplyInPlace(
          {keys.data, keys.pitch, 1, query_, tile.pitch},
          tile.keys,
          tile.pitch,
          p.head_size,
          weights_,
          tile.pitch,
          false);
      maskScores(p, tile, weights_);
      const bool grew = exponentiate(tile);
      if (p.dropout.exists()) {
        forDropped(p, tile, [this](int64_t i, int64_t, T factor) { weights_[i] *= factor; });
      }
      if (tile.key > 0 && grew) rescale(tile, width);
      const Rows<T> values = rowsOf<E, T>(value, tile.key, tile.keys, p.value_size, rows_);
      Gemm<T>::multiplyInPlace(
          {weights_, 1, tile.pitch, values.data, values.pitch},
          tile.queries,
          p.value_size,
          tile.keys,
          out_,
          width,
          tile.key > 0);
    }
    finish(tile, width);
  }

 private:
  /// Turns scores into exponentials relative to each query's largest score so far, and adds them
  /// up. change_: what sums of the keys before are to be multiplied by; returns whether any is
  /// not 1.
  bool exponentiate(const Tile& tile) {
    const int64_t n = tile.pitch;
    T high[kQueries], sum[kQueries];
    std::copy_n(top_, n, high);
    for (int64_t r = 0; r < tile.keys; ++r) {
      const T* const row = weights_ + r * n;
      for (int64_t c = 0; c < n; ++c) high[c] = row[c] > high[c] ? row[c] : high[c];
    }
    bool grew = false;
    for (int64_t c = 0; c < n; ++c) grew |= high[c] != top_[c];
    for (int64_t c = 0; c < n; ++c) {
      // Without any score yet, exponentials are those of minus infinity.
      const T base = high[c] == kNothing<T> ? T(0) : high[c];
      change_[c] = exponentialOrNan(top_[c] - base);
      top_[c] = high[c];
      high[c] = base;
      sum[c] = 0;
    }
    for (int64_t r = 0; r < tile.keys; ++r) {
      T* const row = weights_ + r * n;
#pragma GCC ivdep
      for (int64_t c = 0; c < n; ++c) {
        row[c] = exponentialOrNan(row[c] - high[c]);
        sum[c] += row[c];
      }
    }
    for (int64_t c = 0; c < n; ++c) sum_[c] = sum_[c] * change_[c] + sum[c];
    return grew;
  }

  void rescale(const Tile& tile, int64_t width) {
    for (int64_t c = 0; c < tile.queries; ++c) {
      for (int64_t j = 0; j < width; ++j) out_[c * width + j] *= change_[c];
    }
  }

  void finish(const Tile& tile, int64_t width) {
    const Problem<T>& p = problem_;
    const Stored<E, T> stored;
    const Matrix out = p.out.matrix(tile.batch, tile.head);
    T* const logsumexp = p.logsumexp + p.row(tile.batch, tile.head, tile.query);
    for (int64_t c = 0; c < tile.queries; ++c) {
      const T factor = sum_[c] == 0 ? T(0) : T(1) / sum_[c];
      unsigned char* const to = out.row(tile.query + c);
      const T* const from = out_ + c * width;
#pragma GCC ivdep
      for (int64_t j = 0; j < p.value_size; ++j) stored.store(to, j, from[j] * factor);
      logsumexp[c] = top_[c] + std::log(sum_[c]);
    }
  }

  const Problem<T>& problem_;
  T top_[kQueries]; // each query's largest score, and the sum of its exponentials
  T sum_[kQueries];
  T change_[kQueries];
  alignas(64) T query_[kMost * kQueries]; // transposed and scaled
  alignas(64) T weights_[kKeys * kQueries];
  alignas(64) T rows_[kKeys * kMost];
  alignas(64) T out_[kQueries * kMost];
};

/// The backward pass of a head of the keys.
template <class E>
class Backward {
  using T = RowType<E>;
  static constexpr int64_t kMost = PUONE_ATTENTION_MAX_SIZE;

 public:
  explicit Backward(const Problem<T>& problem) : problem_(problem) {}

  void run(int64_t batch, int64_t key_head) {
    const Problem<T>& p = problem_;
    const int64_t group = p.heads / p.key_heads;
    Tile tile{batch, 0, 0, 0, 0, 0, 0};
    for (tile.key = 0; tile.key < p.keys; tile.key += kKeys) {
      tile.keys = std::min(kKeys, p.keys - tile.key);
      std::fill_n(grad_key_, tile.keys * p.head_size, T(0));
      std::fill_n(grad_value_, tile.keys * p.value_size, T(0));
      keys_ =
          rowsOf<E, T>(p.key.matrix(batch, key_head), tile.key, tile.keys, p.head_size, key_rows_);
      values_ = rowsOf<E, T>(
          p.value.matrix(batch, key_head), tile.key, tile.keys, p.value_size, value_rows_);
      for (tile.head = key_head * group; tile.head < (key_head + 1) * group; ++tile.head) {
        // The first tile that sees one of the keys.
        tile.query = p.causal ? tile.key / kQueries * kQueries : 0;
        for (; tile.query < p.queries; tile.query += kQueries) {
          tile.queries = std::min(kQueries, p.queries - tile.query);
          tile.pitch = padded<T>(tile.queries);
          runTile(tile);
        }
      }
      storeRows(p.grad_key, key_head, tile, p.head_size, grad_key_, p.scale);
      storeRows(p.grad_value, key_head, tile, p.value_size, grad_value_, T(1));
    }
  }

 private:
  void runTile(const Tile& tile) {
    const Problem<T>& p = problem_;
    const Matrix query = p.query.matrix(tile.batch, tile.head);
    const Matrix grad_out = p.grad_out.matrix(tile.batch, tile.head);
    const int64_t pitch = tile.pitch;
    transposeRows<E, T>(query, tile.query, tile.queries, p.head_size, p.scale, transposed_, pitch);
    Gemm<T>::multiplyInPlace(
        {keys_.data, keys_.pitch, 1, transposed_, pitch},
        tile.keys,
        pitch,
        p.head_size,
        weights_,
        pitch,
        false);
    maskScores(p, tile, weights_);
    transposeRows<E, T>(grad_out, tile.query, tile.queries, p.value_size, T(1), transposed_, pitch);
    Gemm<T>::multiplyInPlace(
        {values_.data, values_.pitch, 1, transposed_, pitch},
        tile.keys,
        pitch,
        p.value_size,
        grads_,
        pitch,
        false);
    addUpMeans(tile);
    differentiate(tile);
    const Rows<T> grad_rows = rowsOf<E, T>(grad_out, tile.query, tile.queries, p.value_size, rows_);
    Gemm<T>::multiplyInPlace(
        {weights_, pitch, 1, grad_rows.data, grad_rows.pitch},
        tile.keys,
        p.value_size,
        tile.queries,
        grad_value_,
        p.value_size,
        true);
    const Rows<T> query_rows = rowsOf<E, T>(query, tile.query, tile.queries, p.head_size, rows_);
    Gemm<T>::multiplyInPlace(
        {grads_, pitch, 1, query_rows.data, query_rows.pitch},
        tile.keys,
        p.head_size,
        tile.queries,
        grad_key_,
        p.head_size,
        true);
    if (p.grad_query.data == nullptr) return;
    const Matrix grad_query = p.grad_query.matrix(tile.batch, tile.head);
    const int64_t last = p.keysBefore(tile.query + tile.queries);
    T* const first = reinterpret_cast<T*>(grad_query.row(tile.query));
    const int64_t grad_pitch = grad_query.row_stride / static_cast<int64_t>(sizeof(T));
    Gemm<T>::multiplyInPlace(
        {grads_, 1, pitch, keys_.data, keys_.pitch},
        tile.queries,
        p.head_size,
        tile.keys,
        first,
        grad_pitch,
        tile.key > 0);
    if (last > tile.key + tile.keys) return;
    for (int64_t i = 0; i < tile.queries; ++i) {
      for (int64_t j = 0; j < p.head_size; ++j) first[i * grad_pitch + j] *= p.scale;
    }
  }

  /// Turns scores into the weights after dropout, and the gradients of the weights into those of
  /// the scores.
  void differentiate(const Tile& tile) {
    const Problem<T>& p = problem_;
    const int64_t n = tile.pitch;
    const T* const logsumexp = p.logsumexp + p.row(tile.batch, tile.head, tile.query);
    T base[kQueries];
    for (int64_t c = 0; c < n; ++c) {
      base[c] = c >= tile.queries || logsumexp[c] == kNothing<T> ? T(0) : logsumexp[c];
    }
    const T* const means = means_;
    T* const weights = weights_;
    T* const grads = grads_;
    for (int64_t r = 0; r < tile.keys; ++r) {
#pragma GCC ivdep
      for (int64_t c = 0; c < n; ++c) {
        weights[r * n + c] = exponentialOrNan(weights[r * n + c] - base[c]);
      }
    }
    if (p.dropout.exists()) {
      forDropped(p, tile, [&](int64_t i, int64_t query, T factor) {
        grads[i] = weights[i] * (grads[i] * factor - means[query]);
        weights[i] *= factor;
      });
      return;
    }
    for (int64_t r = 0; r < tile.keys; ++r) {
#pragma GCC ivdep
      for (int64_t c = 0; c < n; ++c) {
        grads[r * n + c] = weights[r * n + c] * (grads[r * n + c] - means[c]);
      }
    }
  }

  /// The means of the gradients of each query's weights: the sums of grad_out * out, in the order
  /// of the sums that give those gradients, so that nothing is left of the difference where a query
  /// sees one key. The gradients are in transposed_.
  void addUpMeans(const Tile& tile) {
    const Problem<T>& p = problem_;
    const Matrix out = p.out.matrix(tile.batch, tile.head);
    transposeRows<E, T>(out, tile.query, tile.queries, p.value_size, T(1), rows_, tile.pitch);
    std::fill_n(means_, tile.pitch, T(0));
    for (int64_t j = 0; j < p.value_size; ++j) {
      const T* const grads = transposed_ + j * tile.pitch;
      const T* const outs = rows_ + j * tile.pitch;
      for (int64_t c = 0; c < tile.pitch; ++c) means_[c] += grads[c] * outs[c];
    }
  }

  /// Stores the gradients of the tile's keys.
  void storeRows(
      const Heads& gradient,
      int64_t head,
      const Tile& tile,
      int64_t columns,
      const T* sums,
      T factor) const {
    if (gradient.data == nullptr) return;
    const Stored<E, T> stored;
    const Matrix matrix = gradient.matrix(tile.batch, head);
    for (int64_t i = 0; i < tile.keys; ++i) {
      unsigned char* const to = matrix.row(tile.key + i);
#pragma GCC ivdep
      for (int64_t j = 0; j < columns; ++j) stored.store(to, j, sums[i * columns + j] * factor);
    }
  }

  const Problem<T>& problem_;
  Rows<T> keys_, values_;
  T means_[kQueries];
  alignas(64) T transposed_[kMost * kQueries]; // queries, then their gradients
  alignas(64) T weights_[kKeys * kQueries];
  alignas(64) T grads_[kKeys * kQueries];
  alignas(64) T rows_[kQueries * kMost];
  alignas(64) T key_rows_[kKeys * kMost];
  alignas(64) T value_rows_[kKeys * kMost];
  alignas(64) T grad_key_[kKeys * kMost];
  alignas(64) T grad_value_[kKeys * kMost];
};

} // namespace attending

inline void attentionForward(Launch& launch, const puone_attention_args& args) {
  using namespace attending;
  withAttentionType(args, [&]<class E>(Type<E>) {
    recordDrawn(launch, args);
    const Problem<RowType<E>> problem(launch, args);
    const int64_t tiles = (args.queries + kQueries - 1) / kQueries;
    launch.forRanges(args.batch * args.heads * tiles, 1, [&](int64_t begin, int64_t end) {
      const auto forward = std::make_unique<Forward<E>>(problem);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t head = i / tiles, query = i % tiles * kQueries;
        const int64_t queries = std::min(kQueries, args.queries - query);
        forward->run({head / args.heads, head % args.heads, query, queries, 0, 0, 0});
      }
    });
  });
}

inline void attentionBackward(Launch& launch, const puone_attention_args& args) {
  using namespace attending;
  withAttentionType(args, [&]<class E>(Type<E>) {
    const Problem<RowType<E>> problem(launch, args);
    launch.forRanges(args.batch * args.key_heads, 1, [&](int64_t begin, int64_t end) {
      const auto backward = std::make_unique<Backward<E>>(problem);
      for (int64_t i = begin; i < end; ++i) {
        backward->run(i / args.key_heads, i % args.key_heads);
      }
    });
  });
}

} // namespace puone::kernels::PUONE_ISA
