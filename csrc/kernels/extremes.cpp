// SPDX-License-Identifier: BSD-3-Clause
// Largest and smallest elements, and their positions. NaN is larger and smaller than all numbers.
#include <limits>

#include "kernels/families/extremes.h"
#include "kernels/reduce.h"

namespace puone::kernels::PUONE_ISA {
namespace {

template <class T>
struct Larger {
  using In = T;
  static PUONE_FN bool better(T a, T b) {
    return (a > b) | ((a != a) & (b == b));
  }
};

template <class T>
struct Smaller {
  using In = T;
  static PUONE_FN bool better(T a, T b) {
    return (a < b) | ((a != a) & (b == b));
  }
};

template <class T>
constexpr T kLowest = std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity()
                                                  : std::numeric_limits<T>::lowest();
template <class T>
constexpr T kHighest = std::is_floating_point_v<T> ? std::numeric_limits<T>::infinity()
                                                   : std::numeric_limits<T>::max();

template <class T>
struct Maximum {
  using In = T;
  using Lane = T;
  using Wide = T;
  explicit Maximum(const puone_reduce_args& /*args*/) {}
  PUONE_FN T identity() const {
    return kLowest<T>;
  }
  PUONE_FN T step(T lane, T x) const {
    const T larger = x > lane ? x : lane; // one instruction, which leaves `lane` for a NaN
    return x != x ? x : larger;
  }
  PUONE_FN T combine(T a, T b) const {
    return step(a, b);
  }
  PUONE_FN T finish(T all) const {
    return all;
  }
};

template <class T>
struct Minimum {
  using In = T;
  using Lane = T;
  using Wide = T;
  explicit Minimum(const puone_reduce_args& /*args*/) {}
  PUONE_FN T identity() const {
    return kHighest<T>;
  }
  PUONE_FN T step(T lane, T x) const {
    const T smaller = x < lane ? x : lane;
    return x != x ? x : smaller;
  }
  PUONE_FN T combine(T a, T b) const {
    return step(a, b);
  }
  PUONE_FN T finish(T all) const {
    return all;
  }
};

template <class T>
using MaximumOf = Fold<Maximum<T>>;
template <class T>
using MinimumOf = Fold<Minimum<T>>;
template <class T>
using LargestOf = Extreme<Larger<T>>;
template <class T>
using SmallestOf = Extreme<Smaller<T>>;

} // namespace

PUONE_KERNEL(amax) = reduceKernel<MaximumOf, Ordered>;
PUONE_KERNEL(amin) = reduceKernel<MinimumOf, Ordered>;
PUONE_KERNEL(largest) = reduceKernel<LargestOf, Ordered>;
PUONE_KERNEL(smallest) = reduceKernel<SmallestOf, Ordered>;

} // namespace puone::kernels::PUONE_ISA
