// SPDX-License-Identifier: BSD-3-Clause
// Random numbers whose count depends on their values (rejection), and those that make up a whole:
// permutations, samples of a distribution given by its weights. All are computed in double.
// Compiled without contraction of floating-point operations (kernels.cmake).
#include "kernels/args/sampling.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "kernels/blocks.h"
#include "kernels/families.h"
#include "kernels/map.h"
#include "kernels/random.h"
#include "kernels/uniform_bits.h"

namespace puone::kernels::PUONE_ISA {
namespace {

/// Blocks that an element may use. The chance to need more is below 2^-60 for every sampler.
constexpr int kTrials = 64;

struct TwoUniforms {
  double first, second; // in (0, 1)
};

PUONE_FN TwoUniforms twoUniforms(Drawer& drawer) {
  const PhiloxBlock block = drawer.next();
  return {
      openUnit(drawing::join(block.words[0], block.words[1])),
      openUnit(drawing::join(block.words[2], block.words[3]))};
}

/// log(k!) for integers, by Stirling's series; k! itself where the series is too short.
PUONE_FN double logFactorial(double k) {
  if (k < 10) {
    double product = 1;
    for (double i = 2; i <= k; ++i) product *= i;
    return logarithm(product);
  }
  const double inverse = 1 / k, square = inverse * inverse;
  const double tail =
      inverse * polynomial(square, {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188});
  return (k + 0.5) * logarithm(k) - k + 0.91893853320467274178 + tail; // log(2 pi) / 2
}

/// log(1 + x), exact to the last digits also near 0 (Kahan).
PUONE_FN double logarithmOfOnePlus(double x) {
  const double sum = 1 + x;
  return sum == 1 ? x : logarithm(sum) * (x / (sum - 1));
}

/// Transformed rejection with squeeze (Hoermann, "The generation of binomial random variates" and
/// "The transformed rejection method for generating Poisson random variables", both 1993), for
/// distributions over integers with mean 10 or more. `log_probability(k)` may be off by a constant
/// that `scale` makes good.
struct Hat {
  double a, b, center, squeeze, scale;
};

template <class LogProbability>
PUONE_FN double transformedRejection(
    Drawer& drawer, const Hat& hat, double most, const LogProbability& log_probability) {
  for (int trial = 0; trial < kTrials; ++trial) {
    const TwoUniforms uniform = twoUniforms(drawer);
    const double u = uniform.first - 0.5, v = uniform.second;
    const double side = 0.5 - std::fabs(u);
    const double k = std::floor((2 * hat.a / side + hat.b) * u + hat.center);
    if (k < 0 || k > most) continue;
    if (side >= 0.07 && v <= hat.squeeze) return k;
    if (logarithm(v * hat.scale / (hat.a / (side * side) + hat.b)) <= log_probability(k)) return k;
  }
  return std::floor(hat.center);
}

/// The least k whose cumulative probability exceeds a uniform number. probability(k + 1) is
/// probability(k) * ratio(k).
template <class Ratio>
PUONE_FN double inversion(Drawer& drawer, double probability, double most, const Ratio& ratio) {
  double left = twoUniforms(drawer).first, k = 0;
  while (left > probability && k < most) {
    left -= probability;
    probability *= ratio(k);
    k += 1;
  }
  return k;
}

template <class T>
struct Poisson {
  static constexpr const char* kRefusal = "invalid Poisson rate, expected rate to be non-negative";
  PUONE_FN static bool accepts(T rate) {
    return rate >= 0;
  }
  PUONE_FN T operator()(Drawer drawer, T rate) const {
    if (rate == 0) return 0;
    if (rate < 10) {
      // Where the sum of the probabilities ends in a double.
      return inversion(drawer, exponential(-rate), 150, [=](T k) { return rate / (k + 1); });
    }
    const T b = 0.931 + 2.53 * std::sqrt(rate);
    const T a = -0.059 + 0.02483 * b;
    const T log_rate = logarithm(rate);
    return transformedRejection(
        drawer,
        {a, b, rate + 0.43, 0.9277 - 3.6224 / (b - 2), 1.1239 + 1.1328 / (b - 3.4)},
        HUGE_VAL,
        [=](T k) { return k * log_rate - rate - logFactorial(k); });
  }
};

template <class T>
struct Binomial {
  PUONE_FN T operator()(Drawer drawer, T count, T p) const {
    if (!(count > 0) || p <= 0) return count != count ? count : T(0);
    if (p != p || p >= 1) return p != p ? p : count;
    return p <= 0.5 ? sample(drawer, count, p) : count - sample(drawer, count, 1 - p);
  }

  PUONE_FN static T sample(Drawer& drawer, T count, T p) {
    const T odds = p / (1 - p);
    if (count * p < 10) {
      const T none = exponential(count * logarithmOfOnePlus(-p));
      return inversion(drawer, none, count, [=](T k) { return (count - k) / (k + 1) * odds; });
    }
    const T deviation = std::sqrt(count * p * (1 - p));
    const T b = 1.15 + 2.53 * deviation;
    const T a = -0.0873 + 0.0248 * b + 0.01 * p;
    const T mode = std::floor((count + 1) * p);
    const T log_odds = logarithm(odds);
    const T top = logFactorial(mode) + logFactorial(count - mode);
    return transformedRejection(
        drawer,
        {a, b, count * p + 0.5, 0.92 - 4.2 / b, (2.83 + 5.1 / b) * deviation},
        count,
        [=](T k) {
          return top - logFactorial(k) - logFactorial(count - k) + (k - mode) * log_odds;
        });
  }
};

/// The method of Marsaglia and Tsang ("A simple method for generating gamma variables", 2000).
template <class T>
struct Gamma {
  explicit Gamma(const Parameters& p) : low(p.get<T>(0)) {}

  PUONE_FN T operator()(Drawer drawer, T shape) const {
    if (shape == 0) return 0;
    // A shape below 1 is raised by 1, which a power of a uniform number corrects.
    T scale = 1;
    if (shape < 1) {
      scale = exponential(logarithm(twoUniforms(drawer).first) / shape);
      shape += 1;
    }
    const T x = scale * atLeastOne(drawer, shape);
    return x < low ? low : x;
  }

  PUONE_FN static T atLeastOne(Drawer& drawer, T shape) {
    const T d = shape - T(1) / 3;
    const T c = 1 / std::sqrt(9 * d);
    for (int trial = 0; trial < kTrials - 1; ++trial) {
      const PhiloxBlock block = drawer.next();
      const uint64_t radius = drawing::join(block.words[0], block.words[1]);
      const T z = normalPair<T>(radius, drawing::join(0, block.words[2])).x;
      const T u = openUnit(drawing::join(0, block.words[3]));
      const T root = 1 + c * z;
      if (root <= 0) continue;
      const T v = root * root * root;
      if (u < 1 - 0.0331 * (z * z) * (z * z)) return d * v; // most of the time, without logarithms
      if (logarithm(u) < z * z / 2 + d * (1 - v + logarithm(v))) return d * v;
    }
    return d;
  }

  T low;
};

/// The place of the first running sum above `value`.
PUONE_FN int64_t firstAbove(const double* sums, int64_t n, double value) {
  int64_t low = 0, high = n - 1;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (sums[middle] > value) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

void multinomial(Launch& launch, const puone_multinomial_args& args) {
  auto* const weights = reinterpret_cast<double*>(launch.resolve(args.weights));
  auto* const out = reinterpret_cast<int64_t*>(launch.resolve(args.out));
  const Fault invalid =
      launch.fault("probability tensor contains either `inf`, `nan` or element < 0");
  const Fault empty = launch.fault("invalid multinomial distribution (sum of probabilities <= 0)");
  blocks(launch, args.rows, args.categories, [&](Block& block, int64_t row) {
    double* const sums = weights + row * args.categories;
    const double worst = block.reduce(
        args.categories,
        0.0,
        [=](int64_t i) { return sums[i] >= 0 && sums[i] < HUGE_VAL ? 0.0 : 1.0; },
        [](double a, double b) { return a + b; });
    block.scan(
        args.categories,
        0.0,
        [=](int64_t i) { return sums[i]; },
        [](double a, double b) { return a + b; },
        [=](int64_t i, double sum) { sums[i] = sum; });
    if (worst > 0) invalid.raise();
    if (!(sums[args.categories - 1] > 0)) empty.raise();
  });
  map(launch, args.rows * args.samples, [=] PUONE_DEVICE(int64_t i) {
    const PhiloxBlock block = philox(args.offset / 4, static_cast<uint64_t>(i) / 2, args.seed);
    uint64_t bits[2];
    drawing::split(block, bits);
    const double* const sums = weights + i / args.samples * args.categories;
    const double value = unit(bits[i % 2]) * sums[args.categories - 1];
    out[i] = firstAbove(sums, args.categories, value);
  });
}

/// Fisher and Yates' shuffle, as Durstenfeld wrote it down (Algorithm 235, CACM 1964): of all the
/// ways to a permutation the one with the least traffic, but not a parallel one.
void randperm(Launch& launch, const puone_randperm_args& args) {
  auto* const out = reinterpret_cast<int64_t*>(launch.resolve(args.out));
  map(launch, args.n, [=] PUONE_DEVICE(int64_t i) { out[i] = i; });
  blocks(launch, 1, args.n, [&](Block& block, int64_t) {
    block.once([&] {
      drawing::Draws<uint64_t> draws;
      for (int64_t first = 0; first < args.n; first += drawing::kPiece) {
        const int64_t n = std::min(drawing::kPiece, args.n - first);
        const uint64_t* const bits = draws.of(args.seed, args.offset, first, n);
        for (int64_t i = 0; i < n; ++i) {
          const int64_t place = first + i;
          const auto other = highProduct(bits[i], static_cast<uint64_t>(place) + 1);
          std::swap(out[place], out[other]);
        }
      }
    });
  });
}

constexpr Kernel kKernels[] = {
    randomEntry<Binomial, ComputeTypes<double>>("binomial"),
    randomEntry<Gamma, ComputeTypes<double>>("standard_gamma"),
    entry<puone_multinomial_args, multinomial>("multinomial"),
    randomEntry<Poisson, ComputeTypes<double>>("poisson"),
    entry<puone_randperm_args, randperm>("randperm"),
};

} // namespace

std::span<const Kernel> samplingKernels() {
  return kKernels;
}

} // namespace puone::kernels::PUONE_ISA
