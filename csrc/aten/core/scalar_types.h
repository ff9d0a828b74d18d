// SPDX-License-Identifier: BSD-3-Clause
// PUONE_DISPATCH_SCALAR_TYPES(type, name, [&] {...}): runs the body with scalar_t, for any element
// type that has a c10::Scalar.
#pragma once

#include <ATen/Dispatch_v2.h>

#define PUONE_DISPATCH_SCALAR_TYPES(type, name, ...) \
  AT_DISPATCH_V2(                                    \
      type,                                          \
      name,                                          \
      AT_WRAP(__VA_ARGS__),                          \
      AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX),           \
      c10::kComplexHalf,                             \
      c10::kHalf,                                    \
      c10::kBFloat16,                                \
      c10::kBool,                                    \
      AT_EXPAND(AT_FLOAT8_TYPES),                    \
      AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES))
