// SPDX-License-Identifier: BSD-3-Clause
// Scaled dot product attention: what its flavours share. host/attention.h and simt/attention.h go
// through the scores, the elements of query @ key^T, in tiles that are never all in memory.
#pragma once

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <type_traits>

#include "kernels/args/attention.h"
#include "kernels/isa.h"
#include "kernels/launch.h"
#include "kernels/map.h"
#include "kernels/philox.h"
#include "kernels/random.h"
#include "kernels/row_math.h"
#include "kernels/stored.h"
#include "kernels/target.h"
#include "kernels/types.h"
#include "kernels/uniform_bits.h"

namespace puone::kernels::PUONE_ISA::attending {

/// One head of a tensor: rows whose columns are dense.
struct Matrix {
  unsigned char* data;
  int64_t row_stride; // bytes

  PUONE_FN unsigned char* row(int64_t index) const {
    return data + index * row_stride;
  }
};

/// A tensor [batch, head, row, column].
struct Heads {
  unsigned char* data;
  int64_t strides[3]; // bytes

  Heads(Launch& launch, void* address, const int64_t* strides)
      : data(elementsAt<unsigned char>(launch, address)),
        strides{strides[0], strides[1], strides[2]} {}

  PUONE_FN Matrix matrix(int64_t batch, int64_t head) const {
    return {data + batch * strides[0] + head * strides[1], strides[2]};
  }
};

template <class T>
constexpr T kNothing = -std::numeric_limits<T>::infinity();

/// What a mask's element adds to a score.
template <class M, class T>
PUONE_FN T biasOf(const unsigned char* element) {
  if constexpr (std::is_same_v<M, Bool>) {
    return load<Bool>(element).bits != 0 ? T(0) : kNothing<T>;
  } else {
    return cast<T>(load<M>(element));
  }
}

/// The mask of one head; there is none if `data` is null.
struct Mask {
  const unsigned char* data;
  int64_t query_stride; // bytes
  int64_t key_stride;
  int32_t dtype;

  PUONE_FN const unsigned char* at(int64_t query, int64_t key) const {
    return data + query * query_stride + key * key_stride;
  }

  /// Calls f(Type<M>()) with the type of the elements.
  template <class F>
  PUONE_FN void visit(const F& f) const {
    switch (dtype) {
      case PUONE_BOOL:
        return f(Type<Bool>());
      case PUONE_FLOAT16:
        return f(Type<Half>());
      case PUONE_BFLOAT16:
        return f(Type<BFloat16>());
      case PUONE_FLOAT32:
        return f(Type<float>());
      default:
        return f(Type<double>());
    }
  }
};

/// Which weights are dropped. The seed and the offset are in device memory: a graph draws others at
/// each launch.
class Dropout {
 public:
  Dropout(const Launch& launch, const puone_attention_args& args)
      : drawn_{drawnAt(launch, args, 0), drawnAt(launch, args, 1)},
        keep_(static_cast<float>(1 - args.dropout)),
        scale_(args.dropout < 1 ? 1 / (1 - args.dropout) : 0),
        blocks_((args.keys + 3) / 4) {}

  PUONE_FN bool exists() const {
    return drawn_[0] != nullptr;
  }

  /// The bits of the keys 4 * group ... 4 * group + 3 in a row: a query of a head of a batch index.
  PUONE_FN PhiloxBlock bits(int64_t row, int64_t group) const {
    return philox(*drawn_[1] / 4, static_cast<uint64_t>(row * blocks_ + group), *drawn_[0]);
  }

  /// What a weight is multiplied by.
  template <class T>
  PUONE_FN T factor(uint32_t bits) const {
    return unit(bits) < keep_ ? static_cast<T>(scale_) : T(0);
  }

 private:
  static const uint64_t* drawnAt(
      const Launch& launch, const puone_attention_args& args, int index) {
    if (!(args.dropout > 0)) return nullptr;
    return reinterpret_cast<const uint64_t*>(launch.resolve(args.drawn[index]));
  }

  const uint64_t* drawn_[2];
  float keep_;
  double scale_;
  int64_t blocks_; // of a row
};

/// The arguments of a launch, for the device. T: the type computed in.
template <class T>
struct Problem {
  Problem(Launch& launch, const puone_attention_args& args)
      : batch(args.batch),
        heads(args.heads),
        key_heads(args.key_heads),
        queries(args.queries),
        keys(args.keys),
        head_size(args.head_size),
        value_size(args.value_size),
        dtype(args.dtype),
        causal(args.causal != 0),
        scale(static_cast<T>(args.scale)),
        query(launch, args.query, args.query_strides),
        key(launch, args.key, args.key_strides),
        value(launch, args.value, args.value_strides),
        out(launch, args.out, args.out_strides),
        grad_out(launch, args.grad_out, args.grad_out_strides),
        grad_query(launch, args.grad_query, args.grad_query_strides),
        grad_key(launch, args.grad_key, args.grad_key_strides),
        grad_value(launch, args.grad_value, args.grad_value_strides),
        masks(launch, args.mask, args.mask_strides),
        mask_key_stride(args.mask_strides[3]),
        mask_dtype(args.mask_dtype),
        logsumexp(elementsAt<T>(launch, args.logsumexp)),
        dropout(launch, args) {}

  PUONE_FN int64_t keyHead(int64_t head) const {
    return head / (heads / key_heads);
  }
  /// The index of a query among all of the batch.
  PUONE_FN int64_t row(int64_t of_batch, int64_t head, int64_t index) const {
    return (of_batch * heads + head) * queries + index;
  }
  PUONE_FN Mask mask(int64_t of_batch, int64_t head) const {
    if (masks.data == nullptr) return {};
    const Matrix matrix = masks.matrix(of_batch, head);
    return {matrix.data, matrix.row_stride, mask_key_stride, mask_dtype};
  }
  /// The number of keys that some of the queries before `end` see.
  PUONE_FN int64_t keysBefore(int64_t end) const {
    return causal && end < keys ? end : keys;
  }

  int64_t batch, heads, key_heads, queries, keys, head_size, value_size;
  int32_t dtype;
  bool causal;
  T scale;
  Heads query, key, value, out, grad_out, grad_query, grad_key, grad_value, masks;
  int64_t mask_key_stride;
  int32_t mask_dtype;
  T* logsumexp;
  Dropout dropout;
};

/// Writes the seed and the offset of the forward pass to where Dropout reads them.
inline void recordDrawn(Launch& launch, const puone_attention_args& args) {
  if (!(args.dropout > 0)) return;
  const Position position(launch, args);
  auto* const seed = reinterpret_cast<uint64_t*>(launch.resolve(args.drawn[0]));
  auto* const offset = reinterpret_cast<uint64_t*>(launch.resolve(args.drawn[1]));
  map(launch, 1, [=] PUONE_DEVICE(int64_t) {
    *seed = position.seed();
    *offset = position.counter() * 4;
  });
}

/// Calls body(Type<E>()) for the element type, if the arguments make sense and there are elements.
template <class Body>
void withAttentionType(const puone_attention_args& args, const Body& body) {
  const auto fits = [](int64_t size) { return size >= 0 && size <= PUONE_ATTENTION_MAX_SIZE; };
  if (!fits(args.head_size) || !fits(args.value_size)) {
    throw std::invalid_argument("attention takes heads of at most 256 columns");
  }
  if (args.keys < 1 || args.key_heads < 1 || args.heads % args.key_heads != 0) {
    throw std::invalid_argument("attention needs keys, and heads that are a multiple of key_heads");
  }
  if (args.mask != nullptr && args.mask_dtype != PUONE_BOOL && args.mask_dtype != PUONE_FLOAT32 &&
      args.mask_dtype != args.dtype) {
    throw std::invalid_argument("attention's mask is bool, float32 or of the queries' type");
  }
  if (args.batch == 0 || args.heads == 0) return;
  const auto computes = [&]<class E>(Type<E> type) {
    if (args.dtype != kDtype<E>) return false;
    body(type);
    return true;
  };
  if (!computes(Type<Half>()) && !computes(Type<BFloat16>()) && !computes(Type<float>()) &&
      !computes(Type<double>())) {
    throw std::invalid_argument("attention does not compute in this dtype");
  }
}

} // namespace puone::kernels::PUONE_ISA::attending
