// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/families/delay.h"

namespace puone::kernels::PUONE_ISA {
namespace {

void delay(Launch& launch, const puone_delay_args& args) {
  launch.delay(args.ns);
}

} // namespace

PUONE_KERNEL(delay) = delay;

} // namespace puone::kernels::PUONE_ISA
