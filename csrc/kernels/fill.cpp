// SPDX-License-Identifier: BSD-3-Clause
// "fill" stores the same bytes in every element.
#include <algorithm>
#include <cstring>

#include "kernels/bits.h"
#include "kernels/families/fill.h"
#include "kernels/strided.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {
namespace {

#ifdef PUONE_SIMT

template <class T>
struct Store {
  PUONE_DEVICE void operator()(unsigned char* const* at, int64_t /*i*/) const {
    store(at[0], value);
  }
  T value;
};

template <class T>
void fillElements(Launch& launch, LoopNest<1> nest, T value) {
  constexpr int64_t kWord = sizeof(Bits128), kPerWord = kWord / static_cast<int64_t>(sizeof(T));
  const bool dense = nest.ndim == 1 && nest.stride(0) == static_cast<int64_t>(sizeof(T));
  if (dense && reinterpret_cast<uintptr_t>(nest.data[0]) % kWord == 0) {
    Bits128 word;
    for (int64_t i = 0; i < kPerWord; ++i) {
      std::memcpy(reinterpret_cast<unsigned char*>(&word) + i * sizeof(T), &value, sizeof(T));
    }
    const int64_t words = nest.sizes[0] / kPerWord;
    auto* const out = reinterpret_cast<Bits128*>(nest.data[0]);
    map(launch, words, [=] PUONE_DEVICE(int64_t i) { store(out + i, word); });
    nest.skip(words * kPerWord);
  }
  forElements(launch, nest, Store<T>{value});
}

#else

/// `value` is passed by value: stores to `out` cannot change it, so the loop vectorises.
template <class T>
void fillRow(unsigned char* out, int64_t stride, int64_t n, T value) {
  if (stride == sizeof(T)) {
    for (int64_t i = 0; i < n; ++i) store(out + i * sizeof(T), value);
  } else {
    for (int64_t i = 0; i < n; ++i) store(out + i * stride, value);
  }
}

template <class T>
void fillElements(Launch& launch, const LoopNest<1>& nest, T value) {
  unsigned char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  const bool uniform = std::all_of(bytes, bytes + sizeof(T), [&](auto b) { return b == *bytes; });
  forRows(launch, nest, [&](const auto& data, int64_t n) {
    if (uniform && nest.stride(0) == sizeof(T)) {
      std::memset(data[0], bytes[0], static_cast<size_t>(n) * sizeof(T));
    } else {
      fillRow(data[0], nest.stride(0), n, value);
    }
  });
}

#endif

void fill(Launch& launch, const puone_fill_args& args) {
  const auto nest = loopNest(launch, args.ndim, args.sizes, args.out);
  withBits(args.element_size, [&]<class T>(T) { fillElements(launch, nest, load<T>(args.value)); });
}

} // namespace

PUONE_KERNEL(fill) = fill;

} // namespace puone::kernels::PUONE_ISA
