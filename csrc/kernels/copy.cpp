// SPDX-License-Identifier: BSD-3-Clause
// "copy" casts between any two element types; "copy_bits" moves elements of any type unchanged.
#include "kernels/families/copy.h"
#include "kernels/strided.h"

#ifdef PUONE_SIMT
#include "kernels/simt/copy.h"
#else
#include "kernels/host/copy.h"
#endif

namespace puone::kernels::PUONE_ISA {
namespace {

void copy(Launch& launch, const puone_copy_args& args) {
  const auto nest = loopNest(launch, args.ndim, args.sizes, args.out, args.in);
  if (args.out_dtype == args.in_dtype && args.conj == 0 && args.neg == 0) {
    copyBytes(launch, nest, elementSize(args.in_dtype));
  } else {
    copyElements(launch, nest, args);
  }
}

void copyBits(Launch& launch, const puone_copy_bits_args& args) {
  const auto nest = loopNest(launch, args.ndim, args.sizes, args.out, args.in);
  copyBytes(launch, nest, args.element_size);
}

} // namespace

PUONE_KERNEL(copy) = copy;
PUONE_KERNEL(copy_bits) = copyBits;

} // namespace puone::kernels::PUONE_ISA
