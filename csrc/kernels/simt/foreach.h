// SPDX-License-Identifier: BSD-3-Clause
// Elementwise functors over lists of tensors on a device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "kernels/args/multi_tensor.h"
#include "kernels/cast.h"
#include "kernels/elementwise.h"
#include "kernels/simt/cast.h"
#include "kernels/simt/multi_tensor.h"
#include "kernels/simt/stored.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {
namespace foreaching {

template <class T>
struct Tensor {
  int64_t n;
  unsigned char* data[PUONE_MULTI_OPERANDS]; // null: the immediate
  T immediate;
};

/// A number of a floating type, possibly another than that of the tensors.
template <class T>
PUONE_DEVICE T numberAt(const unsigned char* at, int32_t dtype) {
  if (dtype == PUONE_FLOAT64) return cast<T>(load<double>(at));
  T value{};
  StoredAs<float>{dtype}.visit([&]<class E>(Type<E>) { value = cast<T>(load<E>(at)); });
  return value;
}

inline bool isFloat(int32_t dtype) {
  return dtype == PUONE_FLOAT32 || dtype == PUONE_FLOAT16 || dtype == PUONE_BFLOAT16;
}

/// All operands except numbers have the type of operand 0, the output. Numbers have floating types.
template <class F, class T, int kInputs>
struct Apply {
  PUONE_DEVICE void operator()(const Tensor<T>& tensor, int64_t begin, int64_t end) const {
    T numbers[kInputs] = {};
    bool aligned = isVectorAligned(tensor.data[0]);
    PUONE_UNROLL
    for (int o = 0; o < kInputs; ++o) {
      const unsigned char* const data = tensor.data[o + 1];
      if (!isNumber(o)) {
        aligned = aligned && isVectorAligned(data);
      } else {
        numbers[o] = data == nullptr ? tensor.immediate : numberAt<T>(data, dtypes[o + 1]);
      }
    }
    StoredAs<T>{dtypes[0]}.visit([&]<class E>(Type<E>) {
      constexpr int kElements = 16 / sizeof(E);
      forChunk<kElements>(begin, end, aligned, [&]<int kAtOnce>(Packed<kAtOnce>, int64_t i) {
        step<E, kAtOnce>(tensor, numbers, i, std::make_index_sequence<kInputs>());
      });
    });
  }

  template <class Stored, int kElements, size_t... kInput>
  PUONE_DEVICE void step(
      const Tensor<T>& tensor,
      const T (&numbers)[kInputs],
      int64_t i,
      std::index_sequence<kInput...> /*inputs*/) const {
    T in[kInputs][kElements], out[kElements];
    PUONE_UNROLL
    for (int o = 0; o < kInputs; ++o) {
      if (isNumber(o)) {
        PUONE_UNROLL
        for (int e = 0; e < kElements; ++e) in[o][e] = numbers[o];
      } else {
        readVector<Stored>(in[o], tensor.data[o + 1], i);
      }
    }
    PUONE_UNROLL
    for (int e = 0; e < kElements; ++e) out[e] = functor(in[kInput][e]...);
    writeVector<Stored>(out, tensor.data[0], i);
  }

  PUONE_DEVICE bool isNumber(int input) const {
    return (numbers >> (input + 1) & 1) != 0;
  }

  F functor;
  uint32_t numbers; // bit o: operand o is a number
  int32_t dtypes[PUONE_MULTI_OPERANDS];
};

/// Operands of any types, element by element.
template <class F, class T, int kInputs>
struct ApplyAny {
  PUONE_DEVICE void operator()(const Tensor<T>& tensor, int64_t begin, int64_t end) const {
    for (int64_t i = begin + threadIdx.x; i < end; i += kTensorThreads) {
      element(tensor, i, std::make_index_sequence<kInputs>());
    }
  }

  template <size_t... kInput>
  PUONE_DEVICE void element(
      const Tensor<T>& tensor, int64_t i, std::index_sequence<kInput...> /*inputs*/) const {
    const T out = functor(input(tensor, i, static_cast<int>(kInput) + 1)...);
    storeAs(tensor.data[0] + i * sizes[0], dtypes[0], out);
  }

  PUONE_DEVICE T input(const Tensor<T>& tensor, int64_t i, int o) const {
    if (tensor.data[o] == nullptr) return tensor.immediate;
    return loadAs<T>(tensor.data[o] + i * sizes[o], dtypes[o]);
  }

  F functor;
  int32_t sizes[PUONE_MULTI_OPERANDS]; // of an element; 0: one element for all
  int32_t dtypes[PUONE_MULTI_OPERANDS];
};

/// Whether Apply does for the operands' types.
template <class T>
bool areAlike(const puone_foreach_args& args, int operands) {
  if (std::is_same_v<T, float> ? !isFloat(args.dtypes[0]) : args.dtypes[0] != kDtype<T>) {
    return false;
  }
  for (int o = 1; o < operands; ++o) {
    const int32_t dtype = args.dtypes[o];
    if ((args.immediate >> o & 1) != 0) continue;
    const bool number = (args.broadcast >> o & 1) != 0;
    if (number ? !isFloat(dtype) && dtype != PUONE_FLOAT64 : dtype != args.dtypes[0]) return false;
  }
  return true;
}

template <class T>
Tensor<T> tensorOf(Launch& launch, const puone_foreach_args& args, int t) {
  const auto& from = args.tensors[t];
  Tensor<T> tensor{from.n, {}, {}};
  for (int o = 0; o < PUONE_MULTI_OPERANDS; ++o) {
    if ((args.immediate >> o & 1) != 0) {
      auto* const value = reinterpret_cast<unsigned char*>(&tensor.immediate);
      castRowOf(kDtype<T>, args.dtypes[o])(value, 0, from.immediate, 0, 1);
    } else if (from.data[o]) {
      tensor.data[o] = launch.resolve(from.data[o]);
    }
  }
  return tensor;
}

template <class F, class T>
void runIn(Launch& launch, const puone_foreach_args& args) {
  using Inputs = typename detail::Signature<decltype(&F::operator())>::In;
  constexpr int kInputs = std::tuple_size_v<Inputs>;
  const F functor = detail::functor<F>(args.parameters);
  const uint32_t numbers = args.broadcast | args.immediate;
  const auto describe = [&](int t) { return tensorOf<T>(launch, args, t); };
  if (areAlike<T>(args, kInputs + 1)) {
    Apply<F, T, kInputs> apply{functor, numbers, {}};
    std::copy(std::begin(args.dtypes), std::end(args.dtypes), apply.dtypes);
    return forTensors<Tensor<T>>(launch, args.count, describe, apply);
  }
  ApplyAny<F, T, kInputs> apply{functor, {}, {}};
  for (int o = 0; o <= kInputs; ++o) {
    apply.dtypes[o] = args.dtypes[o];
    apply.sizes[o] = (numbers >> o & 1) != 0 ? 0 : elementSize(args.dtypes[o]);
  }
  forTensors<Tensor<T>>(launch, args.count, describe, apply);
}

} // namespace foreaching

template <template <class> class F>
void foreachTensor(Launch& launch, const puone_foreach_args& args) {
  if (args.compute == PUONE_FLOAT64) {
    foreaching::runIn<F<double>, double>(launch, args);
  } else {
    foreaching::runIn<F<float>, float>(launch, args);
  }
}

} // namespace puone::kernels::PUONE_ISA
