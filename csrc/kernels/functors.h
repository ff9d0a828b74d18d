// SPDX-License-Identifier: BSD-3-Clause
// Functors for the elementwise idiom, written as one expression each.
#pragma once

#include "kernels/complex.h"
#include "kernels/elementwise.h"
#include "kernels/target.h"

/// Name<T>: the expression's value for x, a T.
#define PUONE_UNARY(Name, ...)            \
  template <class T>                      \
  struct Name {                           \
    PUONE_FN auto operator()(T x) const { \
      return __VA_ARGS__;                 \
    }                                     \
  }

/// Name<T>: the expression's value for a and b, both a T.
#define PUONE_BINARY(Name, ...)                \
  template <class T>                           \
  struct Name {                                \
    PUONE_FN auto operator()(T a, T b) const { \
      return __VA_ARGS__;                      \
    }                                          \
  }

namespace puone::kernels::PUONE_ISA {

/// A truth value as an element.
PUONE_FN Bool truth(bool value) {
  return {static_cast<uint8_t>(value)};
}

} // namespace puone::kernels::PUONE_ISA
