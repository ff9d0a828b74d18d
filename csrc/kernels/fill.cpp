// SPDX-License-Identifier: BSD-3-Clause
// "fill" stores the same bytes in every element.
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "kernels/entries.h"
#include "kernels/strided.h"
#include "kernels/types.h"

namespace puone::kernels {
namespace {

struct Bits128 {
  uint64_t words[2];
};

template <class T>
void fillRows(Launch& launch, const LoopNest<1>& nest, const unsigned char* bytes) {
  const T value = load<T>(bytes);
  const bool uniform = std::all_of(bytes, bytes + sizeof(T), [&](auto b) { return b == *bytes; });
  const int64_t stride = nest.stride(0);
  forRows(launch, nest, [&](const auto& data, int64_t n) {
    unsigned char* out = data[0];
    if (stride != sizeof(T)) {
      for (int64_t i = 0; i < n; ++i) store(out + i * stride, value);
    } else if (uniform) {
      std::memset(out, bytes[0], static_cast<size_t>(n) * sizeof(T));
    } else {
      for (int64_t i = 0; i < n; ++i) store(out + i * sizeof(T), value);
    }
  });
}

}  // namespace

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

}  // namespace puone::kernels
