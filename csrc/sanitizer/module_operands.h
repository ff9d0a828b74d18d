// SPDX-License-Identifier: BSD-3-Clause
// The operands of a launch whose kernel is of a module: those that it was declared with.
#pragma once

#include "hal/module.h"
#include "sanitizer/operands.h"

namespace puone::sanitizer {

// Adds the operands of a launch with these arguments.
void addDeclared(const puone_module_kernel& kernel, const void* args, Operands& to);

} // namespace puone::sanitizer
