// SPDX-License-Identifier: BSD-3-Clause
// Loops over the elements of strided operands on a device: a thread per element finds its operands
// from the element's number.
#pragma once

#include <cstdint>

#include "kernels/args.h"
#include "kernels/launch.h"
#include "kernels/simt/map.h"
#include "kernels/strided.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {

/// Division by a number that is constant during a launch, as a multiplication (Granlund and
/// Montgomery, "Division by invariant integers using multiplication", PLDI 1994). For dividends
/// and divisors below 2^31.
class Divider {
 public:
  Divider() = default;
  explicit Divider(uint32_t divisor) : divisor_(divisor) {
    while ((uint64_t{1} << shift_) < divisor) ++shift_;
    const uint64_t power = uint64_t{1} << shift_;
    factor_ = static_cast<uint32_t>(((power - divisor) << 32) / divisor + 1);
  }

  /// n / divisor; `n` becomes the remainder.
  PUONE_FN uint32_t divide(uint32_t& n) const {
    const auto high = static_cast<uint32_t>(uint64_t{n} * factor_ >> 32);
    const uint32_t quotient = (high + n) >> shift_;
    n -= quotient * divisor_;
    return quotient;
  }

 private:
  uint32_t divisor_ = 1, factor_ = 1, shift_ = 0;
};

/// Maximum number of elements per launch.
constexpr int64_t kMaxElements = int64_t{1} << 31;

/// The addresses of the elements of a nest of fewer than kMaxElements.
template <int kOperands>
class ElementAddresses {
 public:
  explicit ElementAddresses(const LoopNest<kOperands>& nest);

  /// Whether there is one dimension, along which operands have steps of less than 2^31 bytes.
  PUONE_FN bool isRow() const {
    return is_row_;
  }
  /// The operands' addresses of element number `linear` of a row.
  PUONE_FN void inRow(uint32_t linear, unsigned char* (&data)[kOperands]) const {
    PUONE_UNROLL
    for (int o = 0; o < kOperands; ++o) {
      data[o] = data_[o] + int64_t{linear} * static_cast<int32_t>(strides_[o][0]);
    }
  }

  /// The operands' addresses of element number `linear`.
  PUONE_FN void at(uint32_t linear, unsigned char* (&data)[kOperands]) const {
    for (int o = 0; o < kOperands; ++o) data[o] = data_[o];
    PUONE_ROLLED
    for (int32_t d = 0; d < ndim_; ++d) {
      uint32_t index = linear;
      if (d + 1 < ndim_) linear = sizes_[d].divide(index);
      for (int o = 0; o < kOperands; ++o) data[o] += index * strides_[o][d];
    }
  }

 private:
  int32_t ndim_;
  bool is_row_;
  Divider sizes_[PUONE_MAX_DIMS];
  int64_t strides_[kOperands][PUONE_MAX_DIMS];
  unsigned char* data_[kOperands];
};

// Outside the class, where the compiler leaves it alone: each of hundreds of launches would contain
// it.
template <int kOperands>
ElementAddresses<kOperands>::ElementAddresses(const LoopNest<kOperands>& nest) : ndim_(nest.ndim) {
  for (int32_t d = 0; d < ndim_; ++d) {
    sizes_[d] = Divider(static_cast<uint32_t>(nest.sizes[d]));
    for (int o = 0; o < kOperands; ++o) strides_[o][d] = nest.strides[o][d];
  }
  is_row_ = nest.ndim == 1;
  for (int o = 0; o < kOperands; ++o) {
    data_[o] = nest.data[o];
    is_row_ &= nest.strides[o][0] == static_cast<int32_t>(nest.strides[o][0]);
  }
}

namespace detail {

/// Calls a callable at `piece` with a part of a nest and the number of its first element.
template <int kOperands>
using CallPiece = void (*)(const void* piece, const LoopNest<kOperands>& part, int64_t first);

// The callable has no type here, so that this is compiled once for a number of operands.
template <int kOperands>
void splitNest(
    LoopNest<kOperands> nest, CallPiece<kOperands> call, const void* piece, int64_t first) {
  const int64_t n = nest.elements();
  if (n == 0) return;
  if (n < kMaxElements) return call(piece, nest, first);
  int32_t outer = nest.ndim - 1;
  while (nest.sizes[outer] == 1) --outer;
  LoopNest<kOperands> rest = nest;
  const int64_t half = nest.sizes[outer] / 2;
  nest.sizes[outer] = half;
  rest.sizes[outer] -= half;
  for (int o = 0; o < kOperands; ++o) rest.data[o] += half * rest.strides[o][outer];
  splitNest(nest, call, piece, first);
  splitNest(rest, call, piece, first + nest.elements());
}

template <int kOperands, class F>
struct AtElement {
  PUONE_DEVICE void operator()(int64_t i) const {
    unsigned char* data[kOperands];
    addresses.at(static_cast<uint32_t>(i), data);
    f(data, first + i);
  }
  ElementAddresses<kOperands> addresses;
  int64_t first;
  F f;
};

} // namespace detail

/// Calls piece(part, first) for parts of `nest` of fewer than kMaxElements each; `first` is the
/// number of the part's first element.
template <int kOperands, class Piece>
void forPieces(const LoopNest<kOperands>& nest, const Piece& piece, int64_t first = 0) {
  const auto call = [](const void* callable, const LoopNest<kOperands>& part, int64_t from) {
    (*static_cast<const Piece*>(callable))(part, from);
  };
  detail::splitNest<kOperands>(nest, call, &piece, first);
}

/// Calls f(data, i) for every element of the nest: data[o] is the address of element i of operand
/// o.
template <int kOperands, class F>
void forElements(Launch& launch, const LoopNest<kOperands>& nest, const F& f) {
  forPieces(nest, [&](const LoopNest<kOperands>& piece, int64_t first) {
    map(launch,
        piece.elements(),
        detail::AtElement<kOperands, F>{ElementAddresses<kOperands>(piece), first, f});
  });
}

} // namespace puone::kernels::PUONE_ISA
