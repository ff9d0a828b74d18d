// SPDX-License-Identifier: BSD-3-Clause
// "fill" stores the same bytes in every element.
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "kernels/entry.h"
#include "kernels/families.h"
#include "kernels/strided.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {
namespace {

struct Bits128 {
  uint64_t words[2];
};

/// `value` by value: the stores through `out` cannot change it, and the loop vectorises.
template <class T>
void fillRow(unsigned char* out, int64_t stride, int64_t n, T value) {
  if (stride == sizeof(T)) {
    for (int64_t i = 0; i < n; ++i) store(out + i * sizeof(T), value);
  } else {
    for (int64_t i = 0; i < n; ++i) store(out + i * stride, value);
  }
}

template <class T>
void fillRows(Launch& launch, const LoopNest<1>& nest, const unsigned char* bytes) {
  const bool uniform = std::all_of(bytes, bytes + sizeof(T), [&](auto b) { return b == *bytes; });
  forRows(launch, nest, [&](const auto& data, int64_t n) {
    if (uniform && nest.stride(0) == sizeof(T)) {
      std::memset(data[0], bytes[0], static_cast<size_t>(n) * sizeof(T));
    } else {
      fillRow(data[0], nest.stride(0), n, load<T>(bytes));
    }
  });
}

void fill(Launch& launch, const puone_fill_args& args) {
  const auto nest = loopNest(launch, args.ndim, args.sizes, args.out);
  switch (args.element_size) {
    case 1:
      return fillRows<uint8_t>(launch, nest, args.value);
    case 2:
      return fillRows<uint16_t>(launch, nest, args.value);
    case 4:
      return fillRows<uint32_t>(launch, nest, args.value);
    case 8:
      return fillRows<uint64_t>(launch, nest, args.value);
    case 16:
      return fillRows<Bits128>(launch, nest, args.value);
  }
  throw std::invalid_argument("element_size is not 1, 2, 4, 8 or 16");
}

constexpr Kernel kKernels[] = {entry<puone_fill_args, fill>("fill")};

} // namespace

std::span<const Kernel> fillKernels() {
  return kKernels;
}

} // namespace puone::kernels::PUONE_ISA
