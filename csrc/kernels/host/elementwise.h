// SPDX-License-Identifier: BSD-3-Clause
// The elementwise idiom on a host. It processes pieces of a row that fit the first-level cache, and
// casts operands that are not dense or not of the functor's types. The functor's own loop is over
// dense arrays and vectorises; only that loop is compiled per functor.
#pragma once

#include <cstdint>
#include <tuple>
#include <utility>

#include "kernels/elementwise.h"

namespace puone::kernels::PUONE_ISA {

/// A functor with its types erased.
struct ElementwiseLoop {
  const void* functor;
  /// Applies the functor to `n` elements. `data` has the address of each operand's dense elements.
  void (*apply)(const void* functor, unsigned char* const* data, int64_t n);
  /// The functor's types, as puone_dtype: outputs first.
  const int32_t* dtypes;
  int outputs;
  int operands;
};

/// Runs the loop over the operands.
void elementwise(Launch& launch, const puone_elementwise_args& args, const ElementwiseLoop& loop);

namespace detail {

template <class F, class... In>
bool anyRare(const F& f, int64_t n, const In*... in) {
  int any = 0; // int, not bool, so that the loop vectorises
  for (int64_t i = 0; i < n; ++i) any |= f.rare(in[i]...) ? 1 : 0;
  return any != 0;
}

template <class F, class Out, class... In>
void apply(const F& f, int64_t n, std::tuple<Out*> out, const In*... in) {
  Out* const to = std::get<0>(out);
  if constexpr (requires { f.rare(*in...); }) {
    if (anyRare(f, n, in...)) {
      for (int64_t i = 0; i < n; ++i) to[i] = f.rare(in[i]...) ? f.slow(in[i]...) : f(in[i]...);
      return;
    }
  }
  // An output may be the same memory as an input, but never overlap it otherwise: iterations are
  // independent.
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) to[i] = f(in[i]...);
}

template <class F, class A, class B, class... In>
void apply(const F& f, int64_t n, std::tuple<A*, B*> out, const In*... in) {
  const auto [first, second] = out;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const auto result = f(in[i]...);
    first[i] = result.first;
    second[i] = result.second;
  }
}

template <class F, class... Out, class... In, size_t... kOut, size_t... kIn>
ElementwiseLoop loopOf(
    const F& functor,
    const std::tuple<Out...>*,
    const std::tuple<In...>*,
    std::index_sequence<kOut...>,
    std::index_sequence<kIn...>) {
  constexpr int kOuts = sizeof...(Out);
  constexpr int kAll = kOuts + sizeof...(In);
  static_assert(kAll <= PUONE_MAX_OPERANDS);
  static constexpr int32_t dtypes[] = {kDtype<Out>..., kDtype<In>...};
  const auto loop = [](const void* f, unsigned char* const* data, int64_t n) {
    apply(
        F(*static_cast<const F*>(f)), // a copy, which no output can alias
        n,
        std::tuple<Out*...>(reinterpret_cast<Out*>(data[kOut])...),
        reinterpret_cast<const In*>(data[kOuts + kIn])...);
  };
  return {&functor, loop, dtypes, kOuts, kAll};
}

} // namespace detail

/// The loop of a functor. The functor must outlive it.
template <class F>
ElementwiseLoop loopOf(const F& functor) {
  using Types = detail::Signature<decltype(&F::operator())>;
  return detail::loopOf(
      functor,
      static_cast<typename Types::Out*>(nullptr),
      static_cast<typename Types::In*>(nullptr),
      std::make_index_sequence<std::tuple_size_v<typename Types::Out>>(),
      std::make_index_sequence<std::tuple_size_v<typename Types::In>>());
}

namespace detail {

template <class F>
void runOf(Launch& launch, const puone_elementwise_args& args) {
  const F f = functor<F>(args.parameters);
  elementwise(launch, args, puone::kernels::PUONE_ISA::loopOf(f));
}

} // namespace detail
} // namespace puone::kernels::PUONE_ISA
