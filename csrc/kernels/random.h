// SPDX-License-Identifier: BSD-3-Clause
// The elementwise idiom with random numbers: the functor's first parameter is its random number.
//
//   template <class T> struct Bernoulli {
//     PUONE_FN T operator()(BitsFor<T> bits, T p) const { return unit(bits) < p; }
//   };
//   PUONE_KERNEL(bernoulli) = randomKernel<Bernoulli, Reals>;
//
// That parameter is one of: uint32_t or uint64_t, random bits; Normal<T>, a standard normal number;
// Drawer, which gives any number of blocks, up to what the caller has reserved. args/random.h says
// which number an element gets. A functor may have a message kRefusal and a function
// accepts(inputs): the launch fails, as by a device assertion, if it returns false for any element.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <tuple>
#include <type_traits>

#include "kernels/args/random.h"
#include "kernels/elementwise.h"
#include "kernels/launch.h"
#include "kernels/philox.h"
#include "kernels/uniform_bits.h"

namespace puone::kernels::PUONE_ISA {

template <class T>
struct Normal {
  T value;
};

/// Where the numbers of a launch are: the key and the first counter of their Philox blocks. With a
/// state in device memory (args/random.h) they are read there when the kernel runs.
class Position {
 public:
  /// `args` is an argument struct with seed, offset and state.
  template <class Args>
  Position(const Launch& launch, const Args& args)
      : seed_(args.seed),
        offset_(args.offset),
        state_(
            args.state == nullptr ? nullptr
                                  : reinterpret_cast<const uint64_t*>(launch.resolve(args.state))) {
  }

  PUONE_FN uint64_t seed() const {
    return state_ == nullptr ? seed_ : state_[0];
  }
  PUONE_FN uint64_t counter() const {
    return (state_ == nullptr ? offset_ : state_[1] + offset_) / 4;
  }

 private:
  uint64_t seed_, offset_;
  const uint64_t* state_;
};

/// The Philox blocks of one element, for functors that need a varying number of draws.
struct Drawer {
  uint64_t seed, counter, element;
  PUONE_FN PhiloxBlock next() {
    return philox(counter++, element, seed);
  }
};

namespace drawing {

PUONE_FN uint64_t join(uint32_t low, uint32_t high) {
  return uint64_t{high} << 32 | low;
}

/// The number of elements that share a block.
template <class T>
constexpr int64_t kPerBlock = 16 / static_cast<int64_t>(sizeof(T));
template <>
inline constexpr int64_t kPerBlock<Drawer> = 1;

PUONE_FN void split(const PhiloxBlock& block, uint32_t* out) {
  for (int i = 0; i < 4; ++i) out[i] = block.words[i];
}
PUONE_FN void split(const PhiloxBlock& block, uint64_t* out) {
  out[0] = join(block.words[0], block.words[1]);
  out[1] = join(block.words[2], block.words[3]);
}
PUONE_FN void split(const PhiloxBlock& block, Normal<float>* out) {
  for (int i = 0; i < 4; i += 2) {
    const Point<float> p = normalPair<float>(block.words[i], block.words[i + 1]);
    out[i].value = p.x;
    out[i + 1].value = p.y;
  }
}
PUONE_FN void split(const PhiloxBlock& block, Normal<double>* out) {
  const Point<double> p = normalPair<double>(
      join(block.words[0], block.words[1]), join(block.words[2], block.words[3]));
  out[0].value = p.x;
  out[1].value = p.y;
}

/// The error that is raised if the functor does not accept its inputs.
template <class F>
DeviceError refusalOf(Launch& launch) {
  if constexpr (requires { F::kRefusal; }) return launch.deviceError(F::kRefusal);
  return {};
}

/// Runs F over the operands. Defined in host/random.h and simt/random.h.
template <class F>
void randomOf(Launch& launch, const puone_random_args& args);

template <template <class> class F, class... T>
void dispatchRandom(Launch& launch, const puone_random_args& args, ComputeTypes<T...> /*types*/) {
  const bool found =
      ((args.elementwise.compute == kDtype<T> && (randomOf<F<T>>(launch, args), true)) || ...);
  if (!found) throw std::invalid_argument("the kernel does not compute in this dtype");
}

template <template <class> class F, class Types>
void runRandom(Launch& launch, const puone_random_args& args) {
  dispatchRandom<F>(launch, args, Types{});
}

} // namespace drawing

/// The random kernel that applies F<T> with T in Types, for PUONE_KERNEL.
template <template <class> class F, class Types>
constexpr Implementation<puone_random_args> randomKernel = drawing::runRandom<F, Types>;

} // namespace puone::kernels::PUONE_ISA

#ifdef PUONE_SIMT
#include "kernels/simt/random.h"
#else
#include "kernels/host/random.h"
#endif
