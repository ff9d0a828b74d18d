// SPDX-License-Identifier: BSD-3-Clause
// The operations between an element of a table and its counterpart. host/indexing.h and
// simt/indexing.h have indexGet(), indexPut() and indexReduce().
#pragma once

#include <type_traits>

#include "kernels/args/indexing.h"
#include "kernels/arithmetic.h"
#include "kernels/cast.h"
#include "kernels/isa.h"
#include "kernels/target.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA::indexed {

template <class T>
struct Get {
  PUONE_FN static void apply(unsigned char* table, unsigned char* element) {
    store(element, load<T>(table));
  }
};

template <class T>
struct Put {
  PUONE_FN static void apply(unsigned char* table, unsigned char* element) {
    store(table, load<T>(element));
  }
};

/// The type that T's sums are computed in.
template <class T>
using Compute = std::conditional_t<
    kIsStorageFloat<T>,
    float,
    std::conditional_t<
        std::is_same_v<T, Bool> || (std::is_integral_v<T> && sizeof(T) < 4),
        int32_t,
        T>>;

struct Sum {
  template <class T>
  PUONE_FN static T combine(T a, T b) {
    return plus(a, b);
  }
};

struct Product {
  template <class T>
  PUONE_FN static T combine(T a, T b) {
    return times(a, b);
  }
};

/// NaN if either argument is NaN.
struct Minimum {
  template <class T>
  PUONE_FN static T combine(T a, T b) {
    return b < a || b != b ? b : a;
  }
};

struct Maximum {
  template <class T>
  PUONE_FN static T combine(T a, T b) {
    return a < b || b != b ? b : a;
  }
};

template <class T, class Reduction>
struct Reduce {
  PUONE_FN static void apply(unsigned char* table, unsigned char* element) {
    using C = Compute<T>;
    store(table, cast<T>(Reduction::combine(cast<C>(load<T>(table)), cast<C>(load<T>(element)))));
  }
};

} // namespace puone::kernels::PUONE_ISA::indexed
