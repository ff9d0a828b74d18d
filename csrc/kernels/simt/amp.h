// SPDX-License-Identifier: BSD-3-Clause
// Gradients are unscaled on a device.
#pragma once

#include <cstdint>

#include "kernels/amp.h"
#include "kernels/args/multi_tensor.h"
#include "kernels/simt/multi_tensor.h"
#include "kernels/simt/stored.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {
namespace amp {

struct Tensor {
  int64_t n;
  unsigned char* data;
};

template <class T>
struct UnscaleChunk {
  PUONE_DEVICE void operator()(const Tensor& tensor, int64_t begin, int64_t end) const {
    const Unscale<T> unscale{load<float>(inv_scale)};
    const bool aligned = isVectorAligned(tensor.data);
    bool bad = false;
    StoredAs<T>{dtype}.visit([&]<class E>(Type<E>) {
      constexpr int kElements = 16 / sizeof(E);
      forChunk<kElements>(begin, end, aligned, [&]<int kAtOnce>(Packed<kAtOnce>, int64_t i) {
        T x[kAtOnce];
        readVector<E>(x, tensor.data, i);
        PUONE_UNROLL
        for (int e = 0; e < kAtOnce; ++e) {
          bad = bad || unscale.isBad(x[e]);
          x[e] = unscale(x[e]);
        }
        writeVector<E>(x, tensor.data, i);
      });
    });
    if (bad) store(found_inf, 1.0f); // by any thread, never cleared: the order does not matter
  }

  const unsigned char* inv_scale;
  unsigned char* found_inf;
  int32_t dtype;
};

} // namespace amp

template <class T>
void unscaleTensors(Launch& launch, const puone_amp_unscale_args& args) {
  const auto describe = [&](int t) {
    return amp::Tensor{args.tensors[t].n, launch.resolve(args.tensors[t].data)};
  };
  forTensors<amp::Tensor>(
      launch,
      args.count,
      describe,
      amp::UnscaleChunk<T>{
          launch.resolve(args.inv_scale), launch.resolve(args.found_inf), args.dtype});
}

} // namespace puone::kernels::PUONE_ISA
