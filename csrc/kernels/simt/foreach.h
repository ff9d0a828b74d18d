// SPDX-License-Identifier: BSD-3-Clause
// Elementwise functors over lists of tensors on a device.
#pragma once

#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "kernels/args/multi_tensor.h"
#include "kernels/elementwise.h"
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

/// A number of any floating type, which need not be that of the tensors.
template <class T>
PUONE_DEVICE T numberAt(const unsigned char* at, int32_t dtype) {
  if (dtype == PUONE_FLOAT64) return cast<T>(load<double>(at));
  if (dtype == PUONE_FLOAT32) return cast<T>(load<float>(at));
  T value{};
  StoredAs<float>{dtype}.visit([&]<class E>(Type<E>) { value = cast<T>(load<E>(at)); });
  return value;
}

/// All operands but numbers have the type of operand 0, which is the output.
template <class F, class T, int kInputs>
struct Apply {
  PUONE_DEVICE void operator()(const Tensor<T>& tensor, int64_t begin, int64_t end) const {
    T numbers[kInputs] = {};
    bool aligned = isPacketAligned(tensor.data[0]);
    PUONE_UNROLL
    for (int o = 0; o < kInputs; ++o) {
      const unsigned char* const data = tensor.data[o + 1];
      if (!isNumber(o)) {
        aligned = aligned && isPacketAligned(data);
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
        readPacket<Stored>(in[o], tensor.data[o + 1], i);
      }
    }
    PUONE_UNROLL
    for (int e = 0; e < kElements; ++e) out[e] = functor(in[kInput][e]...);
    writePacket<Stored>(out, tensor.data[0], i);
  }

  PUONE_DEVICE bool isNumber(int input) const {
    return (numbers >> (input + 1) & 1) != 0;
  }

  F functor;
  uint32_t numbers; // bit o: operand o is one
  int32_t dtypes[PUONE_MULTI_OPERANDS];
};

template <class F, class T>
void runIn(Launch& launch, const puone_foreach_args& args) {
  using Inputs = typename detail::Signature<decltype(&F::operator())>::In;
  Apply<F, T, std::tuple_size_v<Inputs>> apply{
      detail::functor<F>(args.parameters), args.broadcast | args.immediate, {}};
  std::copy(std::begin(args.dtypes), std::end(args.dtypes), apply.dtypes);
  const auto describe = [&](int t) {
    const auto& from = args.tensors[t];
    Tensor<T> tensor{from.n, {}, load<T>(from.immediate)};
    for (int o = 0; o < PUONE_MULTI_OPERANDS; ++o) {
      const bool immediate = (args.immediate >> o & 1) != 0;
      if (!immediate && from.data[o]) tensor.data[o] = launch.resolve(from.data[o]);
    }
    return tensor;
  };
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
