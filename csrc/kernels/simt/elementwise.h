// SPDX-License-Identifier: BSD-3-Clause
// The elementwise idiom on a device. Where all operands have dense, aligned rows, or one element
// for a row, they are read and written as vectors of 16 bytes (8 where an element has half the size
// of the compute type), all others element by element. Operands may have any type: the cast is
// chosen at run time, the same for all threads.
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
#include "kernels/simt/vector.h"
#include "kernels/strided.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {
namespace detail {

/// An operand as device code sees it.
struct ElementOperand {
  alignas(16) unsigned char immediate[16]; // the value of an immediate, in the functor's type
  unsigned char* data;                     // the first element; null: an immediate
  int32_t dtype;
  int32_t via;    // casts go through this type; -1: directly
  int32_t size;   // of an element in memory
  bool broadcast; // stride 0: one element for a row
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

/// f(in...), or f.slow(in...) for the rare arguments of a functor that has them.
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

/// Applies the functor to one element, for forElements.
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

/// The elements of one thread: kVectors vectors of kElements elements. The vectors of the other
/// threads of the block lie between them; those that would be behind the end are not there.
template <class T, int kVectors, int kElements>
struct ThreadVectors {
  T elements[kVectors][kElements];
};

/// With fewer elements, vectors are not faster.
constexpr int64_t kDenseLeast = 4096;
constexpr uint32_t kDenseThreads = 256;
constexpr int kDenseVectors = 2;

/// The addresses of a thread's vectors in all operands.
template <int kVectors, int kAll>
struct VectorAddresses {
  int there; // of the vectors
  unsigned char* of[kVectors][kAll];
};

/// Loads vectors of type Stored and casts them to T in registers.
template <class Stored, class T, int kVectors, int kElements, int kAll>
PUONE_DEVICE void loadVectors(
    ThreadVectors<T, kVectors, kElements>& vectors,
    const VectorAddresses<kVectors, kAll>& addresses,
    int o) {
  using In = AlignedVector<Stored, kElements>;
  In loaded[kVectors] = {}; // the functor is applied behind the end, too: to zeros
  PUONE_UNROLL
  for (int p = 0; p < kVectors; ++p) {
    if (p >= addresses.there) break;
    loaded[p] = loadVector<In>(addresses.of[p][o]);
  }
  PUONE_UNROLL
  for (int p = 0; p < kVectors; ++p) {
    PUONE_UNROLL
    for (int e = 0; e < kElements; ++e) vectors.elements[p][e] = cast<T>(loaded[p].elements[e]);
  }
}

template <class Stored, class T, int kVectors, int kElements, int kAll>
PUONE_DEVICE void storeVectors(
    const ThreadVectors<T, kVectors, kElements>& vectors,
    const VectorAddresses<kVectors, kAll>& addresses,
    int o) {
  PUONE_UNROLL
  for (int p = 0; p < kVectors; ++p) {
    if (p >= addresses.there) break;
    writeVector<Stored, kElements>(vectors.elements[p], addresses.of[p][o]);
  }
}

/// Whether the operand can be read and written in vectors of the functor's type.
inline bool canVectorize(const ElementOperand& operand, int32_t functor_dtype) {
  if (operand.via >= 0) return false;
  const bool halved = operand.dtype == PUONE_FLOAT16 || operand.dtype == PUONE_BFLOAT16;
  return operand.dtype == functor_dtype || (functor_dtype == PUONE_FLOAT32 && halved);
}

/// Calls f(Stored{}) with the type of the operand's elements in memory.
template <class T, class F>
PUONE_DEVICE void withStored(const ElementOperand& operand, const F& f) {
  if constexpr (std::is_same_v<T, float>) {
    if (operand.dtype == PUONE_FLOAT16) return f(Half{});
    if (operand.dtype == PUONE_BFLOAT16) return f(BFloat16{});
  }
  f(T{});
}

/// The vectors of operand `o`.
template <class T, int kVectors, int kElements, int kAll>
PUONE_DEVICE ThreadVectors<T, kVectors, kElements> readVectors(
    const ElementOperand& operand, const VectorAddresses<kVectors, kAll>& addresses, int o) {
  ThreadVectors<T, kVectors, kElements> vectors;
  if (operand.broadcast) {
    PUONE_UNROLL
    for (int p = 0; p < kVectors; ++p) {
      const T value = p < addresses.there ? readElement<T>(operand, addresses.of[p][o]) : T{};
      PUONE_UNROLL
      for (int e = 0; e < kElements; ++e) vectors.elements[p][e] = value;
    }
  } else {
    withStored<T>(
        operand, [&]<class Stored>(Stored) { loadVectors<Stored>(vectors, addresses, o); });
  }
  return vectors;
}

template <class T, int kVectors, int kElements, int kAll>
PUONE_DEVICE void writeVectors(
    const ElementOperand& operand,
    const ThreadVectors<T, kVectors, kElements>& vectors,
    const VectorAddresses<kVectors, kAll>& addresses,
    int o) {
  withStored<T>(
      operand, [&]<class Stored>(Stored) { storeVectors<Stored>(vectors, addresses, o); });
}

template <int kVectors, int kElements, int kAll, class F, class... In>
PUONE_DEVICE void applyVectors(
    const F& f,
    const ElementOperand* operands,
    const VectorAddresses<kVectors, kAll>& addresses,
    const ThreadVectors<In, kVectors, kElements>&... in) {
  using Result = decltype(f(std::declval<In>()...));
  if constexpr (ResultCount<Result>::value == 2) {
    ThreadVectors<decltype(Result::first), kVectors, kElements> a;
    ThreadVectors<decltype(Result::second), kVectors, kElements> b;
    PUONE_UNROLL
    for (int p = 0; p < kVectors; ++p) {
      PUONE_UNROLL
      for (int e = 0; e < kElements; ++e) {
        const Result result = evaluate(f, in.elements[p][e]...);
        a.elements[p][e] = result.first;
        b.elements[p][e] = result.second;
      }
    }
    writeVectors(operands[0], a, addresses, 0);
    writeVectors(operands[1], b, addresses, 1);
  } else {
    ThreadVectors<Result, kVectors, kElements> out;
    PUONE_UNROLL
    for (int p = 0; p < kVectors; ++p) {
      PUONE_UNROLL
      for (int e = 0; e < kElements; ++e) {
        out.elements[p][e] = evaluate(f, in.elements[p][e]...);
      }
    }
    writeVectors(operands[0], out, addresses, 0);
  }
}

template <class... T>
constexpr int vectorElements() {
  size_t largest = 1;
  ((largest = sizeof(T) > largest ? sizeof(T) : largest), ...);
  return static_cast<int>(16 / largest);
}

template <int kElements, class F, int kAll, class... In, size_t... kIn>
PUONE_DEVICE void applyDense(
    const F& f,
    const ElementOperand* operands,
    const VectorAddresses<kDenseVectors, kAll>& addresses,
    const std::tuple<In...>* /*types*/,
    std::index_sequence<kIn...> /*inputs*/) {
  using Result = decltype(f(std::declval<In>()...));
  constexpr int kOuts = ResultCount<Result>::value;
  applyVectors<kDenseVectors, kElements>(
      f,
      operands,
      addresses,
      readVectors<In, kDenseVectors, kElements>(operands[kOuts + kIn], addresses, kOuts + kIn)...);
}

/// `n` vectors.
template <int kElements, class F, int kAll>
PUONE_GLOBAL(kDenseThreads, 1)
void denseKernel(
    uint32_t n, F f, ElementOperands<kAll> operands, ElementAddresses<kAll> of_vectors) {
  using Inputs = typename Signature<decltype(&F::operator())>::In;
  const uint32_t first = blockIdx.x * (kDenseThreads * kDenseVectors) + threadIdx.x;
  VectorAddresses<kDenseVectors, kAll> addresses;
  addresses.there = 0;
  PUONE_UNROLL
  for (int p = 0; p < kDenseVectors; ++p) {
    const uint32_t number = first + p * kDenseThreads;
    if (number >= n) break;
    if (of_vectors.isRow()) {
      of_vectors.inRow(number, addresses.of[p]);
    } else {
      of_vectors.at(number, addresses.of[p]);
    }
    addresses.there = p + 1;
  }
  if (addresses.there == 0) return;
  applyDense<kElements>(
      f,
      operands.all.data(),
      addresses,
      static_cast<const Inputs*>(nullptr),
      std::make_index_sequence<std::tuple_size_v<Inputs>>());
}

// ---- the launch ----

/// Casts the immediate `in` of type `dtype` to the functor's type, through `via` unless it is -1.
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

/// The nest of the vectors of `elements` elements; empty if there are none. Says of the operands
/// which are broadcast along rows.
template <int kAll>
LoopNest<kAll> vectorNest(
    const LoopNest<kAll>& nest, ElementOperands<kAll>& operands, int64_t elements) {
  LoopNest<kAll> vectors = nest;
  bool fits = nest.elements() >= kDenseLeast && (nest.ndim == 1 || nest.sizes[0] % elements == 0);
  for (int o = 0; o < kAll; ++o) {
    ElementOperand& operand = operands.all[o];
    if (operand.data == nullptr) continue;
    operand.broadcast = nest.stride(o) == 0;
    if (operand.broadcast) continue;
    const int64_t bytes = elements * operand.size;
    fits &= nest.stride(o) == operand.size;
    fits &= reinterpret_cast<uintptr_t>(operand.data) % static_cast<uintptr_t>(bytes) == 0;
    for (int32_t d = 1; d < nest.ndim; ++d) fits &= nest.strides[o][d] % bytes == 0;
    vectors.strides[o][0] = bytes;
  }
  vectors.sizes[0] = fits ? nest.sizes[0] / elements : 0;
  return vectors;
}

/// What a launch does with its operands. Nothing here has the type of the functor, so that it is
/// compiled once for a number of operands.
template <int kAll>
struct ElementLoop {
  LoopNest<kAll> vectors; // first
  LoopNest<kAll> nest;    // then element by element
  ElementOperands<kAll> operands;
};

/// `dtypes`: the functor's types, of the outputs, then of the inputs. `elements`: of a vector.
template <int kAll>
ElementLoop<kAll> elementLoop(
    Launch& launch,
    const puone_elementwise_args& args,
    const int32_t (&dtypes)[kAll],
    int outputs,
    int64_t elements) {
  ElementLoop<kAll> loop{};
  loop.vectors.sizes[0] = 0;
  std::array<const puone_operand*, kAll> strided;
  bool vectors = true;
  for (int o = 0; o < kAll; ++o) {
    ElementOperand& operand = loop.operands.all[o];
    const bool immediate = (args.immediate >> o & 1) != 0;
    operand.dtype = args.dtypes[o];
    operand.via = castsThroughCommon(args, dtypes[o], o, o < outputs) ? args.common : -1;
    operand.size = elementSize(args.dtypes[o]);
    operand.broadcast = immediate;
    operand.data = immediate ? nullptr : launch.resolve(args.operands[o].data);
    if (immediate) {
      castImmediate(operand.immediate, dtypes[o], args.immediates[o], operand.dtype, operand.via);
    }
    strided[o] = &args.operands[immediate ? 0 : o]; // an immediate has no address: use the output's
    vectors &= canVectorize(operand, dtypes[o]);
  }
  loop.nest = loopNest<kAll>(launch, args.ndim, args.sizes, strided);
  if (!vectors) return loop;
  loop.vectors = vectorNest(loop.nest, loop.operands, elements);
  // What is left does not fill a vector: of one row alone.
  if (loop.nest.ndim == 1) {
    loop.nest.skip(loop.vectors.sizes[0] * elements);
  } else if (loop.vectors.elements() > 0) {
    loop.nest.sizes[0] = 0;
  }
  return loop;
}

template <class F, class... T>
void runElementwise(
    Launch& launch,
    const puone_elementwise_args& args,
    const F& f,
    int outputs,
    const std::tuple<T...>* /*outputs, then inputs*/) {
  constexpr int kAll = sizeof...(T);
  constexpr int32_t kDtypes[] = {kDtype<T>...};
  constexpr int kElements = vectorElements<T...>();
  const ElementLoop<kAll> loop = elementLoop<kAll>(launch, args, kDtypes, outputs, kElements);
  forPieces(loop.vectors, [&](const LoopNest<kAll>& piece, int64_t /*first*/) {
    const auto n = static_cast<uint32_t>(piece.elements());
    dialect::start<dialect::Threads::kIndependent>(
        launch.stream(),
        denseKernel<kElements, F, kAll>,
        (n + kDenseThreads * kDenseVectors - 1) / (kDenseThreads * kDenseVectors),
        kDenseThreads,
        n,
        f,
        loop.operands,
        ElementAddresses<kAll>(piece));
  });
  forElements(launch, loop.nest, ElementAt<F, kAll>{f, loop.operands});
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
      static_cast<const All*>(nullptr));
}

} // namespace detail
} // namespace puone::kernels::PUONE_ISA
