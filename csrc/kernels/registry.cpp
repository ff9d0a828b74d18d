// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/args.h"
#include "kernels/entries.h"
#include "kernels/kernels.h"

namespace puone::kernels::PUONE_ISA {
namespace {

template <class Args, void (*run)(Launch&, const Args&)>
constexpr Kernel entry(const char* name) {
  return {name, sizeof(Args), [](Launch& launch, const void* args) {
            run(launch, *static_cast<const Args*>(args));
          }};
}

constexpr Kernel kKernels[] = {
    entry<puone_copy_args, copy>("copy"),
    entry<puone_copy_bits_args, copyBits>("copy_bits"),
    entry<puone_delay_args, delay>("delay"),
    entry<puone_fill_args, fill>("fill"),
};

} // namespace

std::span<const Kernel> kernels() {
  return kKernels;
}

} // namespace puone::kernels::PUONE_ISA
