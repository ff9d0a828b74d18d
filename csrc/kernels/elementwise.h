// SPDX-License-Identifier: BSD-3-Clause
// The map idiom over strided operands of any element types:
//
//   template <class T> struct Add {
//     PUONE_FN T operator()(T a, T b) const { return a + b; }
//   };
//   PUONE_KERNEL(add) = elementwiseKernel<Add, Numbers>;
//
// The functor's signature says how many operands there are and which types it computes in; the
// operands may have other types. A functor with a constructor from Parameters gets the operator's
// scalars. Two results are returned as Pair<A, B>. If a few arguments need a slow computation, the
// functor has `bool rare(T...)`, which detects them, and `slow(T...)`, which computes them: the
// loop over all others stays free of branches.
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

/// Groups of compute types.
template <class... T>
struct ComputeTypes {};

using Reals = ComputeTypes<float, double>;
using Integers = ComputeTypes<int32_t, int64_t>;
using Ordered = ComputeTypes<int32_t, int64_t, float, double>;
using Complexes = ComputeTypes<Complex<float>, Complex<double>>;
using Inexact = ComputeTypes<float, double, Complex<float>, Complex<double>>;
using Numbers = ComputeTypes<int32_t, int64_t, float, double, Complex<float>, Complex<double>>;

/// The scalars of an operator, in its compute type.
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

template <class F>
F functor(const unsigned char (*parameters)[16]) {
  if constexpr (std::is_constructible_v<F, const Parameters&>) {
    return F(Parameters(parameters));
  } else {
    return F{};
  }
}

/// Whether operand `o` is cast by way of the common type. An integer may be one that the common
/// type does not have; a result would show that it has not wrapped around, or not been rounded.
/// Floats go in directly: only scalars have another type, and arithmetic takes these as they are.
inline bool castsThroughCommon(
    const puone_elementwise_args& args, int32_t functor_dtype, int o, bool output) {
  const int32_t dtype = args.dtypes[o];
  if (args.common == args.compute || functor_dtype != args.compute || dtype == args.common) {
    return false;
  }
  const bool integers = args.compute == PUONE_INT32 || args.compute == PUONE_INT64;
  if (!integers) return output;
  const int32_t size = elementSize(dtype), common = elementSize(args.common);
  if (output) return size > common || args.common == PUONE_BOOL;
  return size >= common && dtype != PUONE_BOOL;
}

} // namespace detail

namespace detail {

/// Runs F over the operands. Defined in host/elementwise.h and simt/elementwise.h.
template <class F>
void runOf(Launch& launch, const puone_elementwise_args& args);

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

/// The elementwise kernel that applies F<T> with T in Types, for PUONE_KERNEL.
template <template <class> class F, class Types>
constexpr Implementation<puone_elementwise_args> elementwiseKernel = detail::runAny<F, Types>;

} // namespace puone::kernels::PUONE_ISA

#ifdef PUONE_SIMT
#include "kernels/simt/elementwise.h"
#else
#include "kernels/host/elementwise.h"
#endif
