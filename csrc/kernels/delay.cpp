// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/entries.h"

namespace puone::kernels::PUONE_ISA {

void delay(Launch& launch, const puone_delay_args& args) {
  launch.delay(args.ns);
}

} // namespace puone::kernels::PUONE_ISA
