// SPDX-License-Identifier: BSD-3-Clause
// Elements selected by a mask, or because they are not zero. Their positions in the output are
// found in two passes: count each chunk, then start each chunk where those before it end.
#include "kernels/masked.h"
#include "kernels/args/indexing.h"
#include "kernels/families/masked.h"
#include "kernels/map.h"
#include "kernels/prefix.h"
#include "kernels/target.h"
#include "kernels/types.h"

#ifdef PUONE_SIMT
#include "kernels/simt/masked.h"
#else
#include "kernels/host/masked.h"
#endif

namespace puone::kernels::PUONE_ISA {
namespace {

void nonzeroOffsets(Launch& launch, const puone_nonzero_offsets_args& args) {
  auto* const offsets = reinterpret_cast<int64_t*>(launch.resolve(args.offsets));
  const int64_t chunks = maskChunks(args.n);
  countNonzeros(launch, args, offsets);
  map(launch, 1, [=] PUONE_DEVICE(int64_t) { offsets[chunks] = 0; });
  exclusiveSums(launch, offsets, chunks + 1);
}

template <class T>
void assertNonzeroOf(Launch& launch, const unsigned char* in, const DeviceError& error) {
  map(launch, 1, [=] PUONE_DEVICE(int64_t) {
    if (!isNonzero(load<T>(in))) error.raise();
  });
}

void assertNonzero(Launch& launch, const puone_assert_nonzero_args& args) {
  const unsigned char* const in = launch.resolve(args.in);
  const DeviceError error = launch.deviceError(args.message);
  withType(args.dtype, [&]<class T>(T) { assertNonzeroOf<T>(launch, in, error); });
}

} // namespace

PUONE_KERNEL(assert_nonzero) = assertNonzero;
PUONE_KERNEL(masked_fill) = maskedFill;
PUONE_KERNEL(masked_pack) = maskedPack;
PUONE_KERNEL(masked_unpack) = maskedUnpack;
PUONE_KERNEL(nonzero) = nonzero;
PUONE_KERNEL(nonzero_offsets) = nonzeroOffsets;

} // namespace puone::kernels::PUONE_ISA
