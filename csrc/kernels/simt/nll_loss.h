// SPDX-License-Identifier: BSD-3-Clause
// The loss of all targets on a device, in two stages.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/elementwise.h"
#include "kernels/nll_loss.h"
#include "kernels/simt/blocks.h"
#include "kernels/simt/rows.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {
namespace nll {

/// The sums of losses and of weights.
using Sums = Pair<double, double>;

/// The sums of a part of the targets.
template <class X>
struct SumPart {
  PUONE_DEVICE void operator()(const Block& block, int64_t part) const {
    const int64_t first = part * size;
    const int64_t n = loss.count - first < size ? loss.count - first : size;
    const auto sumsOf = [=, this](int64_t i) {
      const int64_t t = loss.classOf(first + i);
      if (t < 0) return Sums{0, 0};
      return Sums{
          static_cast<double>(loss.lossOf(first + i, t)), static_cast<double>(loss.weightOf(t))};
    };
    const Sums sums = block.reduce(n, Sums{0, 0}, sumsOf, Plus());
    block.once([=, this] { parts[part] = sums; });
  }
  NllLoss<X> loss;
  int64_t size; // of a part
  Sums* parts;
};

template <class X>
struct SumParts {
  PUONE_DEVICE void operator()(const Block& block, int64_t /*index*/) const {
    const auto sumsOf = [=, this](int64_t i) { return parts[i]; };
    const Sums sums = block.reduce(count, Sums{0, 0}, sumsOf, Plus());
    block.once([=, this] { loss.keep(sums.first, sums.second); });
  }
  NllLoss<X> loss;
  int64_t count;
  const Sums* parts;
};

template <class X>
void sumUp(Launch& launch, const NllLoss<X>& loss) {
  constexpr int64_t kLeast = 2048, kMost = 1024; // minimum targets per part, maximum parts
  const int64_t size = std::max(kLeast, (loss.count + kMost - 1) / kMost);
  const int64_t count = (loss.count + size - 1) / size;
  auto* const parts =
      static_cast<Sums*>(launch.scratch(static_cast<size_t>(count + 1) * sizeof(Sums)));
  blocks(launch, count, size, SumPart<X>{loss, size, parts});
  blocks(launch, 1, count, SumParts<X>{loss, count, parts});
}

} // namespace nll
} // namespace puone::kernels::PUONE_ISA
