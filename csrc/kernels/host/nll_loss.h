// SPDX-License-Identifier: BSD-3-Clause
// The loss of all targets on a host.
#pragma once

#include <cstdint>

#include "kernels/blocks.h"
#include "kernels/nll_loss.h"

namespace puone::kernels::PUONE_ISA {
namespace nll {

template <class X>
void sumUp(Launch& launch, const NllLoss<X>& loss) {
  blocks(launch, 1, loss.count, [=](const Block& block, int64_t) {
    const auto add = [](double a, double b) { return a + b; };
    const double weights = block.reduce(
        loss.count,
        0.0,
        [&](int64_t i) {
          const int64_t t = loss.classOf(i);
          return t < 0 ? 0.0 : static_cast<double>(loss.weightOf(t));
        },
        add);
    const double losses = block.reduce(
        loss.count,
        0.0,
        [&](int64_t i) {
          const int64_t t = loss.classOf(i);
          return t < 0 ? 0.0 : static_cast<double>(loss.lossOf(i, t));
        },
        add);
    block.once([&] { loss.keep(losses, weights); });
  });
}

} // namespace nll
} // namespace puone::kernels::PUONE_ISA
