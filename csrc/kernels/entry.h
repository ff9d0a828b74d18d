// SPDX-License-Identifier: BSD-3-Clause
// How a kernel source lists its kernels: entry<Args, function>("name"), in a table per family.
#pragma once

#include <span>

#include "kernels/args.h"
#include "kernels/isa.h"
#include "kernels/kernels.h"
#include "kernels/launch.h"

namespace puone::kernels::PUONE_ISA {

template <class Args, void (*run)(Launch&, const Args&)>
constexpr Kernel entry(const char* name) {
  return {name, sizeof(Args), [](Launch& launch, const void* args) {
            run(launch, *static_cast<const Args*>(args));
          }};
}

} // namespace puone::kernels::PUONE_ISA
