// SPDX-License-Identifier: BSD-3-Clause
// Elements found by a mask, or by not being zero. Where the k-th of them lies is known in two
// passes: each chunk is counted, then each chunk starts where those before it end.
#include <algorithm>
#include <stdexcept>
#include <tuple>

#include "kernels/args/indexing.h"
#include "kernels/bits.h"
#include "kernels/cast.h"
#include "kernels/entry.h"
#include "kernels/families.h"
#include "kernels/index_check.h"
#include "kernels/map.h"
#include "kernels/strided.h"
#include "kernels/target.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {
namespace {

constexpr int64_t kChunk = PUONE_OFFSETS_CHUNK;
/// Chunks below which the work is not split over cores.
constexpr int64_t kChunkGrain = kGrain / kChunk;

int64_t chunks(int64_t n) {
  return (n + kChunk - 1) / kChunk;
}

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

void maskedFill(Launch& launch, const puone_masked_fill_args& args) {
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

/// f(T{}) for the element type.
template <class F, size_t... kIndex>
void withType(int32_t dtype, const F& f, std::index_sequence<kIndex...> /*all*/) {
  const bool found =
      ((dtype == static_cast<int32_t>(kIndex) &&
        (f(std::tuple_element_t<kIndex, Types>{}), true)) ||
       ...);
  if (!found) throw std::invalid_argument("not a puone_dtype");
}

template <class F>
void withType(int32_t dtype, const F& f) {
  withType(dtype, f, std::make_index_sequence<kTypes>());
}

void nonzeroOffsets(Launch& launch, const puone_nonzero_offsets_args& args) {
  const unsigned char* in = launch.resolve(args.in);
  auto* offsets = reinterpret_cast<int64_t*>(launch.resolve(args.offsets));
  const int64_t count = chunks(args.n);
  withType(args.dtype, [&]<class T>(T) {
    map(
        launch,
        count,
        [=, n = args.n] PUONE_DEVICE(int64_t chunk) {
          const int64_t end = std::min(n, (chunk + 1) * kChunk);
          int64_t found = 0;
          for (int64_t i = chunk * kChunk; i < end; ++i) {
            found += isNonzero(load<T>(in + i * sizeof(T))) ? 1 : 0;
          }
          offsets[chunk] = found;
        },
        kChunkGrain);
  });
  map(launch, 1, [=] PUONE_DEVICE(int64_t) {
    int64_t sum = 0;
    for (int64_t chunk = 0; chunk < count; ++chunk) {
      const int64_t found = offsets[chunk];
      offsets[chunk] = sum;
      sum += found;
    }
    offsets[count] = sum;
  });
}

void nonzero(Launch& launch, const puone_nonzero_args& args) {
  const unsigned char* in = launch.resolve(args.in);
  const auto* offsets = reinterpret_cast<const int64_t*>(launch.resolve(args.offsets));
  auto* out = reinterpret_cast<int64_t*>(launch.resolve(args.out));
  withType(args.dtype, [&]<class T>(T) {
    map(
        launch,
        chunks(args.n),
        [=] PUONE_DEVICE(int64_t chunk) {
          const int64_t end = std::min(args.n, (chunk + 1) * kChunk);
          int64_t k = offsets[chunk];
          for (int64_t i = chunk * kChunk; i < end; ++i) {
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
        kChunkGrain);
  });
}

/// meet(spread + i, packed + k) for each i at which the mask is true, the k-th of them.
template <class Meet>
void forMasked(Launch& launch, const puone_packing_args& args, const Meet& meet) {
  const unsigned char* mask = launch.resolve(args.mask);
  const auto* offsets = reinterpret_cast<const int64_t*>(launch.resolve(args.offsets));
  unsigned char* spread = launch.resolve(args.spread);
  unsigned char* packed = args.packed_size == 0 ? nullptr : launch.resolve(args.packed);
  const int64_t n = args.n, size = args.element_size;
  const IndexCheck check(launch, "the mask is true more often than there are elements to take");
  map(
      launch,
      chunks(n),
      [=, limit = args.packed_size] PUONE_DEVICE(int64_t chunk) {
        const int64_t end = std::min(n, (chunk + 1) * kChunk);
        int64_t k = offsets[chunk];
        for (int64_t i = chunk * kChunk; i < end; ++i) {
          if (mask[i] == 0) continue;
          if (!check(k, limit)) return;
          meet(spread + i * size, packed + k++ * size);
        }
      },
      kChunkGrain);
}

void maskedPack(Launch& launch, const puone_packing_args& args) {
  withBits(args.element_size, [&]<class T>(T) {
    forMasked(launch, args, [](const unsigned char* spread, unsigned char* packed) {
      store(packed, load<T>(spread));
    });
  });
}

void maskedUnpack(Launch& launch, const puone_packing_args& args) {
  withBits(args.element_size, [&]<class T>(T) {
    forMasked(launch, args, [](unsigned char* spread, const unsigned char* packed) {
      store(spread, load<T>(packed));
    });
  });
}

void assertNonzero(Launch& launch, const puone_assert_nonzero_args& args) {
  const unsigned char* in = launch.resolve(args.in);
  const Fault fault = launch.fault(args.message);
  withType(args.dtype, [&]<class T>(T) {
    map(launch, 1, [=] PUONE_DEVICE(int64_t) {
      if (!isNonzero(load<T>(in))) fault.raise();
    });
  });
}

constexpr Kernel kKernels[] = {
    entry<puone_assert_nonzero_args, assertNonzero>("assert_nonzero"),
    entry<puone_masked_fill_args, maskedFill>("masked_fill"),
    entry<puone_packing_args, maskedPack>("masked_pack"),
    entry<puone_packing_args, maskedUnpack>("masked_unpack"),
    entry<puone_nonzero_args, nonzero>("nonzero"),
    entry<puone_nonzero_offsets_args, nonzeroOffsets>("nonzero_offsets"),
};

} // namespace

std::span<const Kernel> maskedKernels() {
  return kKernels;
}

} // namespace puone::kernels::PUONE_ISA
