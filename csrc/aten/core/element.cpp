// SPDX-License-Identifier: BSD-3-Clause
#include "aten/core/element.h"

#include <cstring>

#include "aten/core/scalar_types.h"

namespace puone {

void putElement(unsigned char (&to)[16], const c10::Scalar& value, c10::ScalarType type) {
  PUONE_DISPATCH_SCALAR_TYPES(type, "putElement", [&] {
    const auto element = value.to<scalar_t>();
    std::memcpy(to, &element, sizeof(scalar_t));
  });
}

} // namespace puone
