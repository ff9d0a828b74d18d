// SPDX-License-Identifier: BSD-3-Clause
// One element as bytes, for arguments that are passed by value; limits of element types.
#pragma once

#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>

namespace puone {

// Writes the value as an element of `type`, which may be any that has a c10::Scalar. Throws if the
// value does not fit.
void putElement(unsigned char (&to)[16], const c10::Scalar& value, c10::ScalarType type);

// The largest finite number of a floating-point type, or of a complex type's parts.
double largestFinite(c10::ScalarType type);

} // namespace puone
