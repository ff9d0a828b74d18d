// SPDX-License-Identifier: BSD-3-Clause
// Masks on a host: chunk by chunk.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/args/indexing.h"
#include "kernels/bits.h"
#include "kernels/map.h"
#include "kernels/masked.h"
#include "kernels/strided.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {

/// With fewer chunks, the work is not split over cores.
constexpr int64_t kMaskGrain = kGrain / kMaskChunk;

template <class T>
void maskedFillRow(
    unsigned char* out,
    int64_t out_stride,
    const unsigned char* mask,
    int64_t mask_stride,
    const unsigned char* value,
    int64_t value_stride,
    int64_t n) {
  if (out_stride == sizeof(T) && mask_stride == 1 && value_stride == 0) {
    const T fixed = load<T>(value);
    for (int64_t i = 0; i < n; ++i) {
      const T old = load<T>(out + i * sizeof(T));
      store(out + i * sizeof(T), mask[i] != 0 ? fixed : old);
    }
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    if (mask[i * mask_stride] != 0) {
      store(out + i * out_stride, load<T>(value + i * value_stride));
    }
  }
}

inline void maskedFill(Launch& launch, const puone_masked_fill_args& args) {
  const puone_operand& value = args.immediate != 0 ? args.out : args.value;
  auto nest = loopNest(launch, args.ndim, args.sizes, args.out, args.mask, value);
  if (args.immediate != 0) {
    nest.data[2] = const_cast<unsigned char*>(args.immediate_value);
    nest.strides[2] = {};
  }
  const auto fill_row = withBits(args.element_size, []<class T>(T) { return maskedFillRow<T>; });
  forRows(launch, nest, [&](const auto& data, int64_t n) {
    fill_row(data[0], nest.stride(0), data[1], nest.stride(1), data[2], nest.stride(2), n);
  });
}

inline void countNonzeros(
    Launch& launch, const puone_nonzero_offsets_args& args, int64_t* offsets) {
  const unsigned char* in = launch.resolve(args.in);
  withType(args.dtype, [&]<class T>(T) {
    map(
        launch,
        maskChunks(args.n),
        [=, n = args.n](int64_t chunk) {
          const int64_t end = std::min(n, (chunk + 1) * kMaskChunk);
          int64_t found = 0;
          for (int64_t i = chunk * kMaskChunk; i < end; ++i) {
            found += isNonzero(load<T>(in + i * sizeof(T))) ? 1 : 0;
          }
          offsets[chunk] = found;
        },
        kMaskGrain);
  });
}

inline void nonzero(Launch& launch, const puone_nonzero_args& args) {
  const unsigned char* in = launch.resolve(args.in);
  const auto* offsets = reinterpret_cast<const int64_t*>(launch.resolve(args.offsets));
  auto* out = reinterpret_cast<int64_t*>(launch.resolve(args.out));
  withType(args.dtype, [&]<class T>(T) {
    map(
        launch,
        maskChunks(args.n),
        [=](int64_t chunk) {
          const int64_t end = std::min(args.n, (chunk + 1) * kMaskChunk);
          int64_t k = offsets[chunk];
          for (int64_t i = chunk * kMaskChunk; i < end; ++i) {
            if (!isNonzero(load<T>(in + i * sizeof(T)))) continue;
            if (k >= args.out_rows) return;
            int64_t rest = i;
            for (int32_t d = args.ndim; d-- > 0;) {
              out[k * args.ndim + d] = rest % args.sizes[d];
              rest /= args.sizes[d];
            }
            ++k;
          }
        },
        kMaskGrain);
  });
}

/// Calls visit(spread + i, packed + k) for each i at which the mask is true; it is the k-th one.
template <class Visit>
void forMasked(Launch& launch, const puone_packing_args& args, const Visit& visit) {
  const unsigned char* mask = launch.resolve(args.mask);
  const auto* offsets = reinterpret_cast<const int64_t*>(launch.resolve(args.offsets));
  unsigned char* spread = launch.resolve(args.spread);
  unsigned char* packed = args.packed_size == 0 ? nullptr : launch.resolve(args.packed);
  const int64_t n = args.n, size = args.element_size;
  const IndexCheck check = packedCheck(launch);
  map(
      launch,
      maskChunks(n),
      [=, limit = args.packed_size](int64_t chunk) {
        const int64_t end = std::min(n, (chunk + 1) * kMaskChunk);
        int64_t k = offsets[chunk];
        for (int64_t i = chunk * kMaskChunk; i < end; ++i) {
          if (mask[i] == 0) continue;
          if (!check(k, limit)) return;
          visit(spread + i * size, packed + k++ * size);
        }
      },
      kMaskGrain);
}

inline void maskedPack(Launch& launch, const puone_packing_args& args) {
  withBits(args.element_size, [&]<class T>(T) {
    forMasked(launch, args, [](const unsigned char* spread, unsigned char* packed) {
      store(packed, load<T>(spread));
    });
  });
}

inline void maskedUnpack(Launch& launch, const puone_packing_args& args) {
  withBits(args.element_size, [&]<class T>(T) {
    forMasked(launch, args, [](unsigned char* spread, const unsigned char* packed) {
      store(spread, load<T>(packed));
    });
  });
}

} // namespace puone::kernels::PUONE_ISA
