// SPDX-License-Identifier: BSD-3-Clause
// The elementwise idiom on a device. Dense, aligned operands are read and written in 16 bytes at a
// time (8 where an element takes half of what is computed in); all others element by element.
// Operands may have any type: the way to it is chosen at run time, by all threads alike.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "kernels/cast.h"
#include "kernels/elementwise.h"
#include "kernels/simt/cast.h"
#include "kernels/simt/map.h"
#include "kernels/simt/strided.h"
#include "kernels/strided.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {
namespace detail {

/// An operand as device code sees it.
struct ElementOperand {
  alignas(16) unsigned char immediate[16]; // if it is one: the element, in the functor's type
  unsigned char* data;                     // dense ones: the first element; null: an immediate
  int32_t dtype;
  int32_t via;  // the type by way of which it is cast, or -1
  int32_t size; // of an element in memory
  bool still;   // dense ones: one element for all
};

template <int kAll>
struct ElementOperands {
  std::array<ElementOperand, kAll> all;
};

template <class T>
PUONE_DEVICE T readElement(const ElementOperand& operand, const unsigned char* at) {
  if (operand.data == nullptr) {
    T value;
    std::memcpy(&value, operand.immediate, sizeof value);
    return value;
  }
  const T value = loadAs<T>(at, operand.dtype);
  return operand.via < 0 ? value : narrowed(value, operand.via);
}

template <class T>
PUONE_DEVICE void writeElement(const ElementOperand& operand, unsigned char* at, T value) {
  storeAs(at, operand.dtype, operand.via < 0 ? value : narrowed(value, operand.via));
}

/// f(in...), taking the rare way where the functor has one.
template <class F, class... In>
PUONE_DEVICE auto evaluate(const F& f, In... in) {
  if constexpr (requires { f.rare(in...); }) {
    if (f.rare(in...)) return f.slow(in...);
  }
  return f(in...);
}

template <class T>
struct ResultCount {
  static constexpr int value = 1;
};
template <class A, class B>
struct ResultCount<Pair<A, B>> {
  static constexpr int value = 2;
};

// ---- any strides, any types ----

template <class F, class... In, size_t... kIn>
PUONE_DEVICE void applyAt(
    const F& f,
    const ElementOperand* operands,
    unsigned char* const* at,
    const std::tuple<In...>* /*types*/,
    std::index_sequence<kIn...> /*inputs*/) {
  using Result = decltype(f(std::declval<In>()...));
  constexpr int kOuts = ResultCount<Result>::value;
  const Result result = evaluate(f, readElement<In>(operands[kOuts + kIn], at[kOuts + kIn])...);
  if constexpr (kOuts == 2) {
    writeElement(operands[0], at[0], result.first);
    writeElement(operands[1], at[1], result.second);
  } else {
    writeElement(operands[0], at[0], result);
  }
}

/// The functor at one place: what forElements calls.
template <class F, int kAll>
struct ElementAt {
  PUONE_DEVICE void operator()(unsigned char* const* at, int64_t /*i*/) const {
    using Inputs = typename Signature<decltype(&F::operator())>::In;
    applyAt(
        f,
        operands.all.data(),
        at,
        static_cast<const Inputs*>(nullptr),
        std::make_index_sequence<std::tuple_size_v<Inputs>>());
  }
  F f;
  ElementOperands<kAll> operands;
};

// ---- dense operands ----

template <class T, int kElements>
struct alignas(sizeof(T) * kElements) Packet {
  T elements[kElements];
};

/// What a thread works on: kPackets packets of kElements elements, a block of threads apart.
template <class T, int kPackets, int kElements>
struct Share {
  T elements[kPackets][kElements];
};

/// Elements below which packets bring nothing.
constexpr int64_t kDenseLeast = 4096;
constexpr uint32_t kDenseThreads = 256;
constexpr int kDensePackets = 2;

/// Stored, of which T is computed: its packets are read and cast in registers.
template <class Stored, class T, int kPackets, int kElements>
PUONE_DEVICE void readPackets(
    Share<T, kPackets, kElements>& share,
    const unsigned char* data,
    int64_t first,
    int64_t step,
    int64_t left) {
  using In = Packet<Stored, kElements>;
  In packets[kPackets];
  PUONE_UNROLL
  for (int p = 0; p < kPackets; ++p) {
    if (p * step >= left) break;
    packets[p] = *reinterpret_cast<const In*>(
        data + (first + p * step) * static_cast<int64_t>(sizeof(Stored)));
  }
  PUONE_UNROLL
  for (int p = 0; p < kPackets; ++p) {
    PUONE_UNROLL
    for (int e = 0; e < kElements; ++e) share.elements[p][e] = cast<T>(packets[p].elements[e]);
  }
}

template <class Stored, class T, int kPackets, int kElements>
PUONE_DEVICE void writePackets(
    const Share<T, kPackets, kElements>& share,
    unsigned char* data,
    int64_t first,
    int64_t step,
    int64_t left) {
  using Out = Packet<Stored, kElements>;
  PUONE_UNROLL
  for (int p = 0; p < kPackets; ++p) {
    if (p * step >= left) break;
    Out packet;
    PUONE_UNROLL
    for (int e = 0; e < kElements; ++e) packet.elements[e] = cast<Stored>(share.elements[p][e]);
    *reinterpret_cast<Out*>(data + (first + p * step) * static_cast<int64_t>(sizeof(Stored))) =
        packet;
  }
}

/// Whether packets of the operand can be read and written as T.
template <class T>
bool hasPackets(const ElementOperand& operand) {
  if (operand.via >= 0) return false;
  const bool halved = operand.dtype == PUONE_FLOAT16 || operand.dtype == PUONE_BFLOAT16;
  return operand.dtype == kDtype<T> || (std::is_same_v<T, float> && halved);
}

/// f(Stored{}) with the type that the operand's elements have in memory.
template <class T, class F>
PUONE_DEVICE void withStored(const ElementOperand& operand, const F& f) {
  if constexpr (std::is_same_v<T, float>) {
    if (operand.dtype == PUONE_FLOAT16) return f(Half{});
    if (operand.dtype == PUONE_BFLOAT16) return f(BFloat16{});
  }
  f(T{});
}

/// Of `left` elements from `first` to the end of the operands.
template <class T, int kPackets, int kElements>
PUONE_DEVICE Share<T, kPackets, kElements> readShare(
    const ElementOperand& operand, int64_t first, int64_t step, int64_t left) {
  Share<T, kPackets, kElements> share;
  if (operand.still) {
    const T value = readElement<T>(operand, operand.data);
    PUONE_UNROLL
    for (int p = 0; p < kPackets; ++p) {
      PUONE_UNROLL
      for (int e = 0; e < kElements; ++e) share.elements[p][e] = value;
    }
  } else {
    withStored<T>(operand, [&]<class Stored>(Stored) {
      readPackets<Stored>(share, operand.data, first, step, left);
    });
  }
  return share;
}

template <class T, int kPackets, int kElements>
PUONE_DEVICE void writeShare(
    const ElementOperand& operand,
    const Share<T, kPackets, kElements>& share,
    int64_t first,
    int64_t step,
    int64_t left) {
  withStored<T>(operand, [&]<class Stored>(Stored) {
    writePackets<Stored>(share, operand.data, first, step, left);
  });
}

template <int kPackets, int kElements, class F, class... In>
PUONE_DEVICE void applyShares(
    const F& f,
    const ElementOperand* operands,
    int64_t first,
    int64_t step,
    int64_t left,
    const Share<In, kPackets, kElements>&... in) {
  using Result = decltype(f(std::declval<In>()...));
  if constexpr (ResultCount<Result>::value == 2) {
    Share<decltype(Result::first), kPackets, kElements> a;
    Share<decltype(Result::second), kPackets, kElements> b;
    PUONE_UNROLL
    for (int p = 0; p < kPackets; ++p) {
      PUONE_UNROLL
      for (int e = 0; e < kElements; ++e) {
        const Result result = evaluate(f, in.elements[p][e]...);
        a.elements[p][e] = result.first;
        b.elements[p][e] = result.second;
      }
    }
    writeShare(operands[0], a, first, step, left);
    writeShare(operands[1], b, first, step, left);
  } else {
    Share<Result, kPackets, kElements> out;
    PUONE_UNROLL
    for (int p = 0; p < kPackets; ++p) {
      PUONE_UNROLL
      for (int e = 0; e < kElements; ++e) {
        out.elements[p][e] = evaluate(f, in.elements[p][e]...);
      }
    }
    writeShare(operands[0], out, first, step, left);
  }
}

template <class... T>
constexpr int packetElements() {
  size_t largest = 1;
  ((largest = sizeof(T) > largest ? sizeof(T) : largest), ...);
  return static_cast<int>(16 / largest);
}

template <class F, class... In, size_t... kIn>
PUONE_DEVICE void applyDense(
    const F& f,
    const ElementOperand* operands,
    int64_t n,
    const std::tuple<In...>* /*types*/,
    std::index_sequence<kIn...> /*inputs*/) {
  using Result = decltype(f(std::declval<In>()...));
  constexpr int kOuts = ResultCount<Result>::value;
  constexpr int kElements = kOuts == 2 ? packetElements<In...>() : packetElements<Result, In...>();
  constexpr int64_t kStep = static_cast<int64_t>(kDenseThreads) * kElements;
  const int64_t first =
      blockIdx.x * (kStep * kDensePackets) + static_cast<int64_t>(threadIdx.x) * kElements;
  const int64_t left = n - first;
  if (left <= 0) return;
  applyShares<kDensePackets, kElements>(
      f,
      operands,
      first,
      kStep,
      left,
      readShare<In, kDensePackets, kElements>(operands[kOuts + kIn], first, kStep, left)...);
}

template <class F, int kAll>
PUONE_GLOBAL void denseKernel(int64_t n, F f, ElementOperands<kAll> operands) {
  using Inputs = typename Signature<decltype(&F::operator())>::In;
  applyDense(
      f,
      operands.all.data(),
      n,
      static_cast<const Inputs*>(nullptr),
      std::make_index_sequence<std::tuple_size_v<Inputs>>());
}

// ---- the launch ----

/// Whether the operand may hold what the common type does not, or show that a result has wrapped.
inline bool isNarrowed(
    const puone_elementwise_args& args, int32_t functor_dtype, int o, bool output) {
  const int32_t dtype = args.dtypes[o];
  if (args.common == args.compute || functor_dtype != args.compute) return false;
  if (dtype == args.common || dtype == PUONE_BOOL) return false;
  const int32_t size = elementSize(dtype), common = elementSize(args.common);
  return output ? size > common : size >= common;
}

/// The bytes `immediate` of type `dtype` as the functor's type, by way of the common one.
inline void castImmediate(
    unsigned char* out,
    int32_t functor_dtype,
    const unsigned char* in,
    int32_t dtype,
    int32_t via) {
  unsigned char between[16];
  if (via >= 0) {
    castRowOf(via, dtype)(between, 16, in, 16, 1);
    in = between;
    dtype = via;
  }
  castRowOf(functor_dtype, dtype)(out, 16, in, 16, 1);
}

template <int kAll>
bool isDense(const LoopNest<kAll>& nest, ElementOperands<kAll>& operands) {
  if (nest.ndim > 1 || nest.elements() < kDenseLeast) return false;
  for (int o = 0; o < kAll; ++o) {
    ElementOperand& operand = operands.all[o];
    if (operand.data == nullptr) continue;
    operand.still = nest.stride(o) == 0;
    const bool aligned = reinterpret_cast<uintptr_t>(operand.data) % 16 == 0;
    if (!operand.still && (nest.stride(o) != operand.size || !aligned)) return false;
  }
  return true;
}

template <class F, class... T, size_t... kOperand>
void runElementwise(
    Launch& launch,
    const puone_elementwise_args& args,
    const F& f,
    int outputs,
    const std::tuple<T...>* /*outputs, then inputs*/,
    std::index_sequence<kOperand...> /*operands*/) {
  constexpr int kAll = sizeof...(T);
  constexpr int32_t dtypes[] = {kDtype<T>...};
  constexpr int kElements = packetElements<T...>();
  ElementOperands<kAll> operands{};
  std::array<const puone_operand*, kAll> places;
  for (int o = 0; o < kAll; ++o) {
    ElementOperand& operand = operands.all[o];
    const bool immediate = (args.immediate >> o & 1) != 0;
    operand.dtype = args.dtypes[o];
    operand.via = isNarrowed(args, dtypes[o], o, o < outputs) ? args.common : -1;
    operand.size = elementSize(args.dtypes[o]);
    operand.still = immediate;
    operand.data = immediate ? nullptr : launch.resolve(args.operands[o].data);
    if (immediate) {
      castImmediate(operand.immediate, dtypes[o], args.immediates[o], operand.dtype, operand.via);
    }
    places[o] = &args.operands[immediate ? 0 : o]; // it is nowhere: the output's place will do
  }
  LoopNest<kAll> nest = loopNest<kAll>(launch, args.ndim, args.sizes, places);
  if ((hasPackets<T>(operands.all[kOperand]) && ...) && isDense(nest, operands)) {
    const int64_t n = nest.elements() / kElements * kElements;
    constexpr int64_t kPerBlock = int64_t{kDenseThreads} * kElements * kDensePackets;
    dialect::start<dialect::Threads::kApart>(
        launch.stream(),
        denseKernel<F, kAll>,
        static_cast<uint32_t>((n + kPerBlock - 1) / kPerBlock),
        kDenseThreads,
        n,
        f,
        operands);
    // What does not fill a packet.
    nest.sizes[0] -= n;
    for (int o = 0; o < kAll; ++o) nest.data[o] += n * nest.stride(o);
  }
  forElements(launch, nest, ElementAt<F, kAll>{f, operands});
}

template <class F>
void runOf(Launch& launch, const puone_elementwise_args& args) {
  using Types = Signature<decltype(&F::operator())>;
  using All = decltype(std::tuple_cat(
      std::declval<typename Types::Out>(), std::declval<typename Types::In>()));
  runElementwise(
      launch,
      args,
      functor<F>(args.parameters),
      static_cast<int>(std::tuple_size_v<typename Types::Out>),
      static_cast<const All*>(nullptr),
      std::make_index_sequence<std::tuple_size_v<All>>());
}

} // namespace detail
} // namespace puone::kernels::PUONE_ISA
