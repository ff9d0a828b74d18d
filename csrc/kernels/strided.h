// SPDX-License-Identifier: BSD-3-Clause
// Loops over the elements of several strided operands: the nest of dimensions, for both flavours.
// host/strided.h iterates row by row, simt/strided.h with one thread per element.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/args.h"
#include "kernels/isa.h"
#include "kernels/launch.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {

/// Loops over fewer elements are not split over cores.
constexpr int64_t kGrain = 32 << 10;

/// A loop nest over `kOperands` operands. Dimension 0 is the innermost; ndim is at least 1.
template <int kOperands>
struct LoopNest {
  int32_t ndim = 1;
  std::array<int64_t, PUONE_MAX_DIMS> sizes{1};
  std::array<unsigned char*, kOperands> data{};
  std::array<std::array<int64_t, PUONE_MAX_DIMS>, kOperands> strides{}; // bytes

  PUONE_FN int64_t elements() const {
    int64_t n = 1;
    for (int32_t d = 0; d < ndim; ++d) n *= sizes[d];
    return n;
  }

  PUONE_FN int64_t stride(int operand) const {
    return strides[operand][0];
  }

  /// Leaves out the first n elements of dimension 0, of a nest of that one.
  void skip(int64_t n) {
    sizes[0] -= n;
    for (int o = 0; o < kOperands; ++o) data[o] += n * stride(o);
  }
};

/// The nest of a kernel's arguments. Dimensions of size 1 are dropped and contiguous dimensions are
/// merged, so that contiguous operands become one long row.
template <int kOperands>
LoopNest<kOperands> loopNest(
    Launch& launch,
    int32_t ndim,
    const int64_t* sizes,
    const std::array<const puone_operand*, kOperands>& all) {
  LoopNest<kOperands> nest;
  int32_t last = -1;
  for (int32_t d = 0; d < ndim; ++d) {
    if (sizes[d] == 0) {
      nest.sizes[0] = 0;
      nest.ndim = 1;
      return nest;
    }
    if (sizes[d] == 1) continue;
    const bool continues = last >= 0 && std::all_of(all.begin(), all.end(), [&](const auto& o) {
                             const int operand = static_cast<int>(&o - all.data());
                             return o->strides[d] == nest.strides[operand][last] * nest.sizes[last];
                           });
    if (continues) {
      nest.sizes[last] *= sizes[d];
      continue;
    }
    nest.sizes[++last] = sizes[d];
    for (int o = 0; o < kOperands; ++o) nest.strides[o][last] = all[o]->strides[d];
  }
  nest.ndim = last + 1 > 0 ? last + 1 : 1;
  for (int o = 0; o < kOperands; ++o) nest.data[o] = launch.resolve(all[o]->data);
  return nest;
}

template <class... Operands>
LoopNest<sizeof...(Operands)> loopNest(
    Launch& launch, int32_t ndim, const int64_t* sizes, const Operands&... operands) {
  return loopNest<sizeof...(Operands)>(launch, ndim, sizes, {&operands...});
}

} // namespace puone::kernels::PUONE_ISA

#ifdef PUONE_SIMT
#include "kernels/simt/strided.h"
#else
#include "kernels/host/strided.h"
#endif
