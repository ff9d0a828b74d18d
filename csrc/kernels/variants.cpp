// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/kernels.h"

namespace puone::kernels {

// Defined by the generated registry, once per instruction set it is compiled for (kernels.cmake).
namespace baseline {
std::span<const Kernel> kernels();
}
namespace v3 {
std::span<const Kernel> kernels();
}
namespace v4 {
std::span<const Kernel> kernels();
}

std::span<const Variant> variants() {
  static const Variant built[] = {
#ifdef PUONE_KERNELS_baseline
      {"baseline", true, baseline::kernels()},
#endif
#ifdef PUONE_KERNELS_v3
      {"v3", __builtin_cpu_supports("x86-64-v3") != 0, v3::kernels()},
#endif
#ifdef PUONE_KERNELS_v4
      {"v4", __builtin_cpu_supports("x86-64-v4") != 0, v4::kernels()},
#endif
  };
  return built;
}

} // namespace puone::kernels
