// SPDX-License-Identifier: BSD-3-Clause
// The kernels' entry functions, one per argument struct of args.h.
#pragma once

#include "kernels/args.h"
#include "kernels/launch.h"

namespace puone::kernels {

void copy(Launch& launch, const puone_copy_args& args);
void copyBits(Launch& launch, const puone_copy_bits_args& args);
void delay(Launch& launch, const puone_delay_args& args);
void fill(Launch& launch, const puone_fill_args& args);

}  // namespace puone::kernels
