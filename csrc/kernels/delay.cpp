// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/entry.h"
#include "kernels/families.h"

namespace puone::kernels::PUONE_ISA {
namespace {

void delay(Launch& launch, const puone_delay_args& args) {
  launch.delay(args.ns);
}

constexpr Kernel kKernels[] = {entry<puone_delay_args, delay>("delay")};

} // namespace

std::span<const Kernel> delayKernels() {
  return kKernels;
}

} // namespace puone::kernels::PUONE_ISA
