// SPDX-License-Identifier: BSD-3-Clause
// Optimizer steps on a device.
#pragma once

#include <cstdint>

#include "kernels/args/multi_tensor.h"
#include "kernels/fused_optimizer.h"
#include "kernels/simt/multi_tensor.h"
#include "kernels/simt/stored.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {
namespace fused {

/// The arrays: parameter, gradient, states. Null: absent.
constexpr int kArrays = 5;

struct Tensor {
  int64_t n;
  unsigned char* arrays[kArrays];
  const unsigned char* step;
};

template <class T>
PUONE_DEVICE void update(const Adam<T>& step, T (&a)[kArrays], const Tensor& tensor) {
  step(a[0], a[1], a[2], a[3], tensor.arrays[4] != nullptr ? &a[4] : nullptr);
}
template <class T>
PUONE_DEVICE void update(const Sgd<T>& step, T (&a)[kArrays], const Tensor& tensor) {
  step(a[0], a[1], tensor.arrays[2] != nullptr ? &a[2] : nullptr);
}
template <class T>
PUONE_DEVICE void update(const Adagrad<T>& step, T (&a)[kArrays], const Tensor& /*tensor*/) {
  step(a[0], a[1], a[2]);
}

template <template <class> class Step, class T>
struct Update {
  PUONE_DEVICE void operator()(const Tensor& tensor, int64_t begin, int64_t end) const {
    const Settings settings(options);
    if (settings.skip) return;
    const Step<T> step(options, settings, tensor.step);
    bool aligned = true;
    PUONE_UNROLL
    for (int a = 0; a < kArrays; ++a) aligned = aligned && isVectorAligned(tensor.arrays[a]);
    StoredAs<T>{dtype}.visit([&]<class E>(Type<E>) {
      constexpr int kElements = 16 / sizeof(T);
      forChunk<kElements>(begin, end, aligned, [&]<int kAtOnce>(Packed<kAtOnce>, int64_t i) {
        one<E, kAtOnce>(step, tensor, i);
      });
    });
  }

  template <class Stored, int kElements>
  PUONE_DEVICE void one(const Step<T>& step, const Tensor& tensor, int64_t i) const {
    T x[kArrays][kElements] = {};
    PUONE_UNROLL
    for (int a = 0; a < kArrays; ++a) {
      if (tensor.arrays[a] != nullptr) readVector<Stored>(x[a], tensor.arrays[a], i);
    }
    PUONE_UNROLL
    for (int e = 0; e < kElements; ++e) {
      T of[kArrays] = {x[0][e], x[1][e], x[2][e], x[3][e], x[4][e]};
      update(step, of, tensor);
      PUONE_UNROLL
      for (int a = 0; a < kArrays; ++a) x[a][e] = of[a];
    }
    PUONE_UNROLL
    for (int a = 0; a < kArrays; ++a) {
      const bool changes = tensor.arrays[a] != nullptr && (a != 1 || step.gradient.scale != 1);
      if (changes) writeVector<Stored>(x[a], tensor.arrays[a], i);
    }
  }

  Options options;
  int32_t dtype;
};

template <template <class> class Step, class T>
void runIn(Launch& launch, const puone_fused_args& args) {
  const auto describe = [&](int t) {
    const auto& from = args.tensors[t];
    return Tensor{
        from.n,
        {resolved(launch, from.parameter),
         resolved(launch, from.gradient),
         resolved(launch, from.states[0]),
         resolved(launch, from.states[1]),
         resolved(launch, from.states[2])},
        resolved(launch, from.step)};
  };
  forTensors<Tensor>(
      launch, args.count, describe, Update<Step, T>{Options(launch, args), args.dtype});
}

} // namespace fused

template <template <class> class Step>
void fusedStep(Launch& launch, const puone_fused_args& args) {
  args.dtype == PUONE_FLOAT64 ? fused::runIn<Step, double>(launch, args)
                              : fused::runIn<Step, float>(launch, args);
}

} // namespace puone::kernels::PUONE_ISA
