// SPDX-License-Identifier: BSD-3-Clause
// How a kernel source defines its kernels: PUONE_KERNEL(gemm) = multiplyMatrices;
//
// The name is one that csrc/hal/kernels.yaml lists under the source's family, and the value a
// function that takes the argument struct named there. Any difference fails the build: a name that
// is not listed and a function of another struct do not compile, a kernel that is listed and not
// defined, or defined twice, does not link.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa.h"
#include "kernels/kernels.h"
#include "kernels/launch.h"

// kernels/families/*.h declare the constants.
#define PUONE_KERNEL(name) constinit const decltype(kernel_##name) kernel_##name

namespace puone::kernels::PUONE_ISA {

template <class Args>
using Implementation = void (*)(Launch& launch, const Args& args);

/// The row of a kernel in a registry.
template <class Args, const Implementation<Args>& implementation>
constexpr Kernel entry(const char* name, uint32_t version, uint64_t element_types) {
  return {name, version, element_types, sizeof(Args), [](Launch& launch, const void* args) {
            implementation(launch, *static_cast<const Args*>(args));
          }};
}

} // namespace puone::kernels::PUONE_ISA
