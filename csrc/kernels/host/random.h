// SPDX-License-Identifier: BSD-3-Clause
// Random numbers on a host: pieces of a row are drawn, cast, computed and cast back, each in a loop
// that the compiler may vectorise.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "kernels/cast.h"
#include "kernels/host/philox_blocks.h"
#include "kernels/random.h"
#include "kernels/strided.h"

namespace puone::kernels::PUONE_ISA::drawing {

/// Elements of a row that are processed at a time.
constexpr int64_t kPiece = 256;

template <class T>
struct Buffer {
  Buffer() {} // does not initialise the elements
  alignas(64) T elements[kPiece];
};

/// One operand as dense elements of T, piece by piece: in place, or cast into a buffer.
template <class T>
class Dense {
 public:
  Dense(Buffer<T>& buffer, int32_t dtype, int64_t stride)
      : buffer_(buffer.elements),
        stride_(stride),
        direct_(dtype == kDtype<T> && stride == static_cast<int64_t>(sizeof(T))),
        in_(castRowOf(kDtype<T>, dtype)),
        out_(castRowOf(dtype, kDtype<T>)) {}

  const T* read(const unsigned char* data, int64_t n) const {
    if (direct_) return reinterpret_cast<const T*>(data);
    in_(reinterpret_cast<unsigned char*>(buffer_), sizeof(T), data, stride_, n);
    return buffer_;
  }

  /// Where the caller writes the elements of `data`; finish() stores them.
  T* write(unsigned char* data) const {
    return direct_ ? reinterpret_cast<T*>(data) : buffer_;
  }
  void finish(unsigned char* data, int64_t n) const {
    if (direct_) return;
    out_(data, stride_, reinterpret_cast<const unsigned char*>(buffer_), sizeof(T), n);
  }

 private:
  T* const buffer_;
  const int64_t stride_;
  const bool direct_;
  const RowFunction in_, out_;
};

/// The random numbers of the elements [first, first + n); `n` is at most kPiece.
template <class T>
class Draws {
 public:
  const T* of(const Position& position, int64_t first, int64_t n) {
    const uint64_t seed = position.seed(), counter = position.counter();
    const int64_t skip = first % kPerBlock<T>;
    const uint64_t group = static_cast<uint64_t>(first / kPerBlock<T>);
    const int64_t groups = (skip + n + kPerBlock<T> - 1) / kPerBlock<T>;
    blocks_.compute(counter, group, seed, groups);
#pragma GCC ivdep
    for (int64_t g = 0; g < groups; ++g) split(blocks_[g], draws_ + g * kPerBlock<T>);
    return draws_ + skip;
  }

 private:
  static constexpr int64_t kMost = kPiece / kPerBlock<T> + 1; // blocks of a piece
  PhiloxBlocks<kMost> blocks_;
  T draws_[kMost * kPerBlock<T>];
};

template <>
class Draws<Drawer> {
 public:
  const Drawer* of(const Position& position, int64_t first, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      draws_[i] = {position.seed(), position.counter(), static_cast<uint64_t>(first + i)};
    }
    return draws_;
  }

 private:
  Drawer draws_[kPiece];
};

template <class F, class Draw, class Out, class... In>
void apply(const F& f, int64_t n, const Draw* draws, std::tuple<Out*> out, const In*... in) {
  Out* const to = std::get<0>(out);
  // An output may be the same memory as an input, but never overlap it otherwise: iterations are
  // independent.
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) to[i] = f(draws[i], in[i]...);
}

/// Assignment that vectorises: GCC does not vectorise copies of structs.
template <class T>
void put(T& to, T value) {
  if constexpr (std::is_same_v<T, Bool>) {
    to.bits = value.bits;
  } else {
    to = value;
  }
}

template <class F, class Draw, class A, class B, class... In>
void apply(const F& f, int64_t n, const Draw* draws, std::tuple<A*, B*> out, const In*... in) {
  const auto [first, second] = out;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const auto result = f(draws[i], in[i]...);
    put(first[i], result.first);
    put(second[i], result.second);
  }
}

template <class F, class... In>
bool acceptsAll(int64_t n, const In*... in) {
  bool all = true;
  for (int64_t i = 0; i < n; ++i) all &= F::accepts(in[i]...);
  return all;
}

template <class F, class Draw, class... Out, class... In, size_t... kOut, size_t... kIn>
void random(
    Launch& launch,
    const puone_random_args& args,
    const F& f,
    const std::tuple<Out...>*,
    const std::tuple<Draw, In...>*,
    std::index_sequence<kOut...>,
    std::index_sequence<kIn...>) {
  constexpr int kOuts = sizeof...(Out);
  constexpr int kAll = kOuts + sizeof...(In);
  const puone_elementwise_args& operands = args.elementwise;
  const LoopNest<kAll> nest = loopNest<kAll>(
      launch,
      operands.ndim,
      operands.sizes,
      {&operands.operands[kOut]..., &operands.operands[kOuts + kIn]...});
  const DeviceError refusal = refusalOf<F>(launch);
  const Position position(launch, args);
  launch.forRanges(nest.elements(), kGrain, [&](int64_t begin, int64_t end) {
    Draws<Draw> draws;
    std::tuple<Buffer<Out>..., Buffer<In>...> buffers;
    std::tuple<Dense<Out>...> out{
        Dense<Out>(std::get<kOut>(buffers), operands.dtypes[kOut], nest.stride(kOut))...};
    std::tuple<Dense<In>...> in{Dense<In>(
        std::get<kOuts + kIn>(buffers), operands.dtypes[kOuts + kIn], nest.stride(kOuts + kIn))...};
    int64_t first = begin;
    rowsBetween(nest, nest.data, begin, end, [&](auto data, int64_t n) {
      for (int64_t left = n, m = 0; left > 0; left -= m, first += m) {
        m = std::min(left, kPiece);
        const std::tuple<const In*...> inputs{std::get<kIn>(in).read(data[kOuts + kIn], m)...};
        if constexpr (requires { F::kRefusal; }) {
          if (!acceptsAll<F>(m, std::get<kIn>(inputs)...)) refusal.raise();
        }
        apply(
            f,
            m,
            draws.of(position, first, m),
            std::tuple<Out*...>(std::get<kOut>(out).write(data[kOut])...),
            std::get<kIn>(inputs)...);
        (std::get<kOut>(out).finish(data[kOut], m), ...);
        for (int o = 0; o < kAll; ++o) data[o] += m * nest.stride(o);
      }
    });
  });
}

template <class F>
void randomOf(Launch& launch, const puone_random_args& args) {
  using Types = detail::Signature<decltype(&F::operator())>;
  random(
      launch,
      args,
      detail::functor<F>(args.elementwise.parameters),
      static_cast<typename Types::Out*>(nullptr),
      static_cast<typename Types::In*>(nullptr),
      std::make_index_sequence<std::tuple_size_v<typename Types::Out>>(),
      std::make_index_sequence<std::tuple_size_v<typename Types::In> - 1>());
}

} // namespace puone::kernels::PUONE_ISA::drawing
