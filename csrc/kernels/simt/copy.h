// SPDX-License-Identifier: BSD-3-Clause
// Copies on a device: dense ones 16 bytes at a time, transpositions by squares, others an element
// per thread.
#pragma once

#include <cstdint>

#include "kernels/args.h"
#include "kernels/bits.h"
#include "kernels/cast.h"
#include "kernels/elementwise.h"
#include "kernels/simt/cast.h"
#include "kernels/simt/strided.h"
#include "kernels/simt/transpose.h"
#include "kernels/strided.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {
namespace copying {

template <class T>
struct MoveBits {
  PUONE_DEVICE void operator()(unsigned char* const* at, int64_t /*i*/) const {
    store(at[0], load<T>(at[1]));
  }
};

/// Copies the whole 16-byte words of a dense pair of operands; `nest` becomes the rest.
inline void copyWords(Launch& launch, LoopNest<2>& nest, int32_t size) {
  constexpr int64_t kWord = sizeof(Bits128);
  if (nest.ndim > 1 || nest.stride(0) != size || nest.stride(1) != size) return;
  const auto address = [&](int o) { return reinterpret_cast<uintptr_t>(nest.data[o]); };
  if (address(0) % kWord != 0 || address(1) % kWord != 0) return;
  const int64_t words = nest.sizes[0] * size / kWord;
  auto* const out = reinterpret_cast<Bits128*>(nest.data[0]);
  const auto* const in = reinterpret_cast<const Bits128*>(nest.data[1]);
  map(launch, words, [=] PUONE_DEVICE(int64_t i) { store(out + i, load<Bits128>(in + i)); });
  nest.skip(words * kWord / size);
}

template <class In>
struct CastElement {
  PUONE_DEVICE void operator()(unsigned char* const* at, int64_t /*i*/) const {
    In value = load<In>(at[1]);
    if (conj) value = conjugated(value);
    if (neg) value = negated(value);
    storeAs(at[0], out_dtype, value);
  }
  int32_t out_dtype;
  bool conj, neg;
};

/// Casts between floating types are vectorised.
template <class T>
struct Same {
  PUONE_FN T operator()(T x) const {
    return x;
  }
};

inline bool isFloat(int32_t dtype) {
  return dtype == PUONE_FLOAT32 || dtype == PUONE_FLOAT16 || dtype == PUONE_BFLOAT16;
}

inline void castFloats(Launch& launch, const puone_copy_args& args) {
  puone_elementwise_args same{};
  same.ndim = args.ndim;
  same.compute = same.common = PUONE_FLOAT32;
  same.dtypes[0] = args.out_dtype;
  same.dtypes[1] = args.in_dtype;
  same.operands[0] = args.out;
  same.operands[1] = args.in;
  for (int32_t d = 0; d < args.ndim; ++d) same.sizes[d] = args.sizes[d];
  detail::runOf<Same<float>>(launch, same);
}

} // namespace copying

/// out = cast(f(in)), f being the arguments' conj and neg.
inline void copyElements(Launch& launch, const LoopNest<2>& nest, const puone_copy_args& args) {
  const bool conj = args.conj != 0, neg = args.neg != 0;
  if (!conj && !neg && copying::isFloat(args.in_dtype) && copying::isFloat(args.out_dtype)) {
    return copying::castFloats(launch, args);
  }
  switch (args.in_dtype) {
#define PUONE_CASE(name, Type) \
  case name:                   \
    return forElements(launch, nest, copying::CastElement<Type>{args.out_dtype, conj, neg});
    PUONE_FOR_TYPES(PUONE_CASE)
#undef PUONE_CASE
  }
}

/// out = in, elements of `size` bytes.
inline void copyBytes(Launch& launch, LoopNest<2> nest, int32_t size) {
  copying::copyWords(launch, nest, size);
  withBits(size, [&]<class T>(T) {
    if (!transpose<T>(launch, nest)) forElements(launch, nest, copying::MoveBits<T>{});
  });
}

} // namespace puone::kernels::PUONE_ISA
