// SPDX-License-Identifier: BSD-3-Clause
// The map idiom over strided operands of any element types:
//
//   template <class T> struct Add {
//     PUONE_FN T operator()(T a, T b) const { return a + b; }
//   };
//   elementwiseEntry<Add, Numbers>("add")
//
// The functor's signature says how many operands there are and which types it computes in; those
// of the operands may be others. A functor with a constructor from Parameters gets the operator's
// scalars. Two results are returned as Pair<A, B>. This is the host's implementation: it works on
// pieces of a row that fit the nearest cache, casting what is not yet, or not densely, in the
// functor's types; the functor's own loop is then over dense arrays and vectorises.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>

#include "kernels/args/elementwise.h"
#include "kernels/cast.h"
#include "kernels/entry.h"
#include "kernels/isa.h"
#include "kernels/strided.h"
#include "kernels/target.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {

/// The types operators compute in, in the groups in which operators have them.
template <class... T>
struct ComputeTypes {};

using Reals = ComputeTypes<float, double>;
using Integers = ComputeTypes<int32_t, int64_t>;
using Ordered = ComputeTypes<int32_t, int64_t, float, double>;
using Complexes = ComputeTypes<Complex<float>, Complex<double>>;
using Inexact = ComputeTypes<float, double, Complex<float>, Complex<double>>;
using Numbers = ComputeTypes<int32_t, int64_t, float, double, Complex<float>, Complex<double>>;

/// The scalars of an operator, in the type it computes in.
class Parameters {
 public:
  explicit Parameters(const puone_elementwise_args& args) : args_(args) {}

  template <class T>
  T get(int index) const {
    return load<T>(args_.parameters[index]);
  }

 private:
  const puone_elementwise_args& args_;
};

template <class A, class B>
struct Pair {
  A first;
  B second;
};

namespace detail {

template <class T>
struct Outputs {
  using Types = std::tuple<T>;
};
template <class A, class B>
struct Outputs<Pair<A, B>> {
  using Types = std::tuple<A, B>;
};

template <class Call>
struct Signature;
template <class F, class R, class... A>
struct Signature<R (F::*)(A...) const> {
  using Out = typename Outputs<R>::Types;
  using In = std::tuple<A...>;
};

/// Elements of a row that are worked on at a time.
constexpr int64_t kPiece = 256;

template <class T>
struct Buffer {
  Buffer() {} // leaves the elements uninitialised
  alignas(64) T elements[kPiece];
};

/// One operand as dense elements of T, piece by piece: those in memory, or a buffer of casts.
template <class T>
class Dense {
 public:
  Dense(Buffer<T>& buffer, int32_t dtype, int64_t stride)
      : buffer_(buffer.elements),
        stride_(stride),
        direct_(dtype == kDtype<T> && stride == static_cast<int64_t>(sizeof(T))),
        in_(castRowOf(kDtype<T>, dtype)),
        out_(castRowOf(dtype, kDtype<T>)) {}

  bool direct() const {
    return direct_;
  }

  /// `n` elements from `data` on.
  const T* read(const unsigned char* data, int64_t n) {
    if (direct_) return reinterpret_cast<const T*>(data);
    if (stride_ == 0 && data == seen_ && n <= filled_) return buffer_;
    in_(reinterpret_cast<unsigned char*>(buffer_), sizeof(T), data, stride_, n);
    seen_ = data;
    filled_ = n;
    return buffer_;
  }

  /// Where to put `n` elements that belong to `data`; finish() brings them there.
  T* write(unsigned char* data) {
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
  const unsigned char* seen_ = nullptr;
  int64_t filled_ = 0;
};

template <class F, class Out, class... In>
void apply(const F& f, Out* out, int64_t n, const In*... in) {
  // An output may be an input, never another part of it: no iteration depends on another.
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = f(in[i]...);
}

template <class F, class A, class B, class... In>
void apply(const F& f, A* first, B* second, int64_t n, const In*... in) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const auto result = f(in[i]...);
    first[i] = result.first;
    second[i] = result.second;
  }
}

template <class F, class... Out, class... In, size_t... kOut, size_t... kIn>
void elementwise(
    Launch& launch,
    const puone_elementwise_args& args,
    const F& f,
    const std::tuple<Out...>*,
    const std::tuple<In...>*,
    std::index_sequence<kOut...>,
    std::index_sequence<kIn...>) {
  constexpr int kOuts = sizeof...(Out);
  constexpr int kAll = kOuts + sizeof...(In);
  static_assert(kAll <= PUONE_MAX_OPERANDS);
  // An immediate stands still wherever the output goes.
  std::array<const puone_operand*, kAll> operands;
  for (int o = 0; o < kAll; ++o) operands[o] = &args.operands[args.immediate >> o & 1 ? 0 : o];
  LoopNest<kAll> nest = loopNest<kAll>(launch, args.ndim, args.sizes, operands);
  for (int o = 0; o < kAll; ++o) {
    if (args.immediate >> o & 1) {
      nest.data[o] = const_cast<unsigned char*>(args.immediates[o]);
      nest.strides[o] = {};
    }
  }
  forRows(launch, nest, [&](auto data, int64_t n) {
    std::tuple<Buffer<Out>..., Buffer<In>...> buffers;
    std::tuple<Dense<Out>...> out{
        Dense<Out>(std::get<kOut>(buffers), args.dtypes[kOut], nest.stride(kOut))...};
    std::tuple<Dense<In>...> in{Dense<In>(
        std::get<kOuts + kIn>(buffers), args.dtypes[kOuts + kIn], nest.stride(kOuts + kIn))...};
    const bool direct =
        (std::get<kOut>(out).direct() && ...) && (std::get<kIn>(in).direct() && ...);
    for (int64_t left = n, m = 0; left > 0; left -= m) {
      m = direct ? left : std::min(left, kPiece);
      apply(
          f,
          std::get<kOut>(out).write(data[kOut])...,
          m,
          std::get<kIn>(in).read(data[kOuts + kIn], m)...);
      (std::get<kOut>(out).finish(data[kOut], m), ...);
      for (int o = 0; o < kAll; ++o) data[o] += m * nest.stride(o);
    }
  });
}

template <class F>
F functor(const puone_elementwise_args& args) {
  if constexpr (std::is_constructible_v<F, const Parameters&>) {
    return F(Parameters(args));
  } else {
    return F{};
  }
}

template <class F>
void elementwiseOf(Launch& launch, const puone_elementwise_args& args) {
  using Types = Signature<decltype(&F::operator())>;
  elementwise(
      launch,
      args,
      functor<F>(args),
      static_cast<typename Types::Out*>(nullptr),
      static_cast<typename Types::In*>(nullptr),
      std::make_index_sequence<std::tuple_size_v<typename Types::Out>>(),
      std::make_index_sequence<std::tuple_size_v<typename Types::In>>());
}

template <template <class> class F, class... T>
void dispatch(Launch& launch, const puone_elementwise_args& args, ComputeTypes<T...> /*types*/) {
  const bool found =
      ((args.compute == kDtype<T> && (elementwiseOf<F<T>>(launch, args), true)) || ...);
  if (!found) throw std::invalid_argument("the kernel does not compute in this dtype");
}

template <template <class> class F, class Types>
void run(Launch& launch, const puone_elementwise_args& args) {
  dispatch<F>(launch, args, Types{});
}

} // namespace detail

/// The table entry of the elementwise kernel that applies F<T>, T one of the types it has.
template <template <class> class F, class Types>
constexpr Kernel elementwiseEntry(const char* name) {
  return entry<puone_elementwise_args, detail::run<F, Types>>(name);
}

} // namespace puone::kernels::PUONE_ISA
