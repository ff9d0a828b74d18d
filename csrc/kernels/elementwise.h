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
// scalars. Two results are returned as Pair<A, B>. A functor that is right for all but a few
// arguments may say which, `bool rare(T...)`, and what holds for them, `slow(T...)`: its loop stays
// free of branches. This is the host's implementation: it works on pieces of a row that fit the
// nearest cache, casting what is not yet, or not densely, in the functor's types; the functor's own
// loop is then over dense arrays and vectorises. That loop is all that is compiled per functor.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>

#include "kernels/args/elementwise.h"
#include "kernels/cast.h"
#include "kernels/entry.h"
#include "kernels/isa.h"
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
  explicit Parameters(const unsigned char (*elements)[16]) : elements_(elements) {}

  template <class T>
  T get(int index) const {
    return load<T>(elements_[index]);
  }

 private:
  const unsigned char (*elements_)[16];
};

template <class A, class B>
struct Pair {
  A first;
  B second;
};

/// A functor as the machinery sees it.
struct ElementwiseLoop {
  const void* functor;
  /// Applies it to `n` elements; an address per operand, each of dense elements of its type.
  void (*apply)(const void* functor, unsigned char* const* data, int64_t n);
  /// The functor's types, as puone_dtype: outputs first.
  const int32_t* dtypes;
  int outputs;
  int operands;
};

/// Runs the loop over the operands.
void elementwise(Launch& launch, const puone_elementwise_args& args, const ElementwiseLoop& loop);

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

template <class F, class... In>
bool anyRare(const F& f, int64_t n, const In*... in) {
  int any = 0; // not bool: so it vectorises
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
  // An output may be an input, never another part of it: no iteration depends on another.
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

template <class F>
F functor(const unsigned char (*parameters)[16]) {
  if constexpr (std::is_constructible_v<F, const Parameters&>) {
    return F(Parameters(parameters));
  } else {
    return F{};
  }
}

} // namespace detail

/// The loop of a functor, which must outlive it.
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

template <template <class> class F, class... T>
void dispatch(Launch& launch, const puone_elementwise_args& args, ComputeTypes<T...> /*types*/) {
  const bool found = ((args.compute == kDtype<T> && (runOf<F<T>>(launch, args), true)) || ...);
  if (!found) throw std::invalid_argument("the kernel does not compute in this dtype");
}

template <template <class> class F, class Types>
void runAny(Launch& launch, const puone_elementwise_args& args) {
  dispatch<F>(launch, args, Types{});
}

} // namespace detail

/// The table entry of the elementwise kernel that applies F<T>, T one of the types it has.
template <template <class> class F, class Types>
constexpr Kernel elementwiseEntry(const char* name) {
  return entry<puone_elementwise_args, detail::runAny<F, Types>>(name);
}

} // namespace puone::kernels::PUONE_ISA
