// SPDX-License-Identifier: BSD-3-Clause
// The kernels' entry functions, one per argument struct of args.h.
#pragma once

#include <span>

#include "kernels/args.h"
#include "kernels/isa.h"
#include "kernels/kernels.h"
#include "kernels/launch.h"

namespace puone::kernels::PUONE_ISA {

void copy(Launch& launch, const puone_copy_args& args);
void copyBits(Launch& launch, const puone_copy_bits_args& args);
void delay(Launch& launch, const puone_delay_args& args);
void fill(Launch& launch, const puone_fill_args& args);

/// All of them, for this instruction set.
std::span<const Kernel> kernels();

} // namespace puone::kernels::PUONE_ISA
