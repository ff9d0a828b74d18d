// SPDX-License-Identifier: BSD-3-Clause
#include "aten/core/element.h"

#include <cstring>
#include <limits>

#include "aten/core/scalar_types.h"

namespace puone {

void putElement(unsigned char (&to)[16], const c10::Scalar& value, c10::ScalarType type) {
  PUONE_DISPATCH_SCALAR_TYPES(type, "putElement", [&] {
    const auto element = value.to<scalar_t>();
    std::memcpy(to, &element, sizeof(scalar_t));
  });
}

double largestFinite(c10::ScalarType type) {
  switch (c10::toRealValueType(type)) {
    case c10::ScalarType::Half:
      return std::numeric_limits<c10::Half>::max();
    case c10::ScalarType::BFloat16:
      return std::numeric_limits<c10::BFloat16>::max();
    case c10::ScalarType::Float:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

} // namespace puone
