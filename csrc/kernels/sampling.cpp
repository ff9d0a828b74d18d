// SPDX-License-Identifier: BSD-3-Clause
// Random numbers that need a varying number of draws (rejection), and those that depend on each
// other: permutations, samples of a distribution given by its weights. All are computed in double.
// Compiled without contraction of floating-point operations (kernels.cmake).
#include "kernels/args/sampling.h"

#include <cmath>
#include <cstdint>

#include "kernels/families/sampling.h"
#include "kernels/map.h"
#include "kernels/permutation.h"
#include "kernels/random.h"
#include "kernels/uniform_bits.h"

namespace puone::kernels::PUONE_ISA {
namespace {

/// Maximum blocks per element. The probability of needing more is below 2^-60 for every sampler.
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

/// log(1 + x), accurate also near 0 (Kahan).
PUONE_FN double logarithmOfOnePlus(double x) {
  const double sum = 1 + x;
  return sum == 1 ? x : logarithm(sum) * (x / (sum - 1));
}

/// Transformed rejection with squeeze (Hoermann, "The generation of binomial random variates" and
/// "The transformed rejection method for generating Poisson random variables", both 1993), for
/// distributions over integers with mean 10 or more. `log_probability(k)` may be off by a constant
/// that `scale` corrects.
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
      // With such a rate, probabilities from 150 on vanish in double.
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
    if (shape == 0) return low;
    // A shape below 1 is increased by 1; a power of a uniform number corrects for that.
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
      if (u < 1 - 0.0331 * (z * z) * (z * z)) return d * v; // in most cases, without logarithms
      if (logarithm(u) < z * z / 2 + d * (1 - v + logarithm(v))) return d * v;
    }
    return d;
  }

  T low;
};

/// The index of the first running sum above `value`.
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

/// Number of categories whose weights one thread adds up. About the square root of all, so that
/// there are as many runs. It determines how sums are rounded.
int64_t runLength(int64_t categories) {
  int64_t length = 1;
  while (length * length < categories) length *= 2;
  return length;
}

/// Running sums of rows of weights, in place, in the same order on every device: first within each
/// run, then over the runs; then the sum before its run is added to every weight.
class RunningSums {
 public:
  RunningSums(Launch& launch, const puone_multinomial_args& args)
      : sums_(reinterpret_cast<double*>(launch.resolve(args.weights))),
        rows_(args.rows),
        n_(args.categories),
        length_(runLength(n_)),
        runs_((n_ + length_ - 1) / length_),
        invalid_(
            launch.deviceError("probability tensor contains either `inf`, `nan` or element < 0")),
        empty_(launch.deviceError("invalid multinomial distribution (sum of probabilities <= 0)")) {
  }

  void compute(Launch& launch) const {
    const RunningSums self = *this;
    const int64_t grain = kGrain / length_ + 1;
    map(launch, rows_ * runs_, [=] PUONE_DEVICE(int64_t i) { self.addRun(i); }, grain);
    map(launch, rows_, [=] PUONE_DEVICE(int64_t row) { self.addRuns(row); }, kGrain / runs_ + 1);
    map(launch, rows_ * n_, [=] PUONE_DEVICE(int64_t i) { self.addBefore(i); });
  }

 private:
  /// Loads in flight.
  static constexpr int kAhead = 8;

  /// Adds up weights[0], weights[step], ... in place.
  template <class Check>
  PUONE_FN static void add(double* weights, int64_t step, int64_t n, const Check& check) {
    double sum = 0;
    for (int64_t i = 0; i < n; i += kAhead) {
      double next[kAhead];
      for (int64_t a = 0; a < kAhead; ++a) next[a] = i + a < n ? weights[(i + a) * step] : 0.0;
      for (int64_t a = 0; a < kAhead; ++a) {
        check(next[a]);
        sum += next[a];
        if (i + a < n) weights[(i + a) * step] = sum;
      }
    }
  }

  PUONE_FN int64_t endOf(int64_t run) const {
    return (run + 1) * length_ < n_ ? (run + 1) * length_ : n_;
  }

  PUONE_FN void addRun(int64_t i) const {
    const int64_t run = i % runs_, begin = run * length_;
    add(sums_ + i / runs_ * n_ + begin, 1, endOf(run) - begin, [this](double weight) {
      if (!(weight >= 0 && weight < HUGE_VAL)) invalid_.raise();
    });
  }

  PUONE_FN void addRuns(int64_t row) const {
    double* const sums = sums_ + row * n_;
    // The last run may be shorter.
    add(sums + length_ - 1, length_, runs_ - 1, [](double) {});
    const double before = runs_ > 1 ? sums[endOf(runs_ - 2) - 1] : 0.0;
    sums[n_ - 1] += before;
    if (!(sums[n_ - 1] > 0)) empty_.raise();
  }

  PUONE_FN void addBefore(int64_t i) const {
    const int64_t place = i % n_, run = place / length_;
    if (run == 0 || place == endOf(run) - 1) return; // already complete
    sums_[i] += sums_[i - place + run * length_ - 1];
  }

  double* sums_;
  int64_t rows_, n_, length_, runs_;
  DeviceError invalid_, empty_;
};

void multinomial(Launch& launch, const puone_multinomial_args& args) {
  const auto* const weights = reinterpret_cast<const double*>(launch.resolve(args.weights));
  auto* const out = reinterpret_cast<int64_t*>(launch.resolve(args.out));
  const Position position(launch, args);
  RunningSums(launch, args).compute(launch);
  map(launch, args.rows * args.samples, [=] PUONE_DEVICE(int64_t i) {
    const PhiloxBlock block =
        philox(position.counter(), static_cast<uint64_t>(i) / 2, position.seed());
    uint64_t bits[2];
    drawing::split(block, bits);
    const double* const sums = weights + i / args.samples * args.categories;
    const double value = unit(bits[i % 2]) * sums[args.categories - 1];
    out[i] = firstAbove(sums, args.categories, value);
  });
}

void randperm(Launch& launch, const puone_randperm_args& args) {
  permute(launch, args, reinterpret_cast<int64_t*>(launch.resolve(args.out)));
}

} // namespace

PUONE_KERNEL(binomial) = randomKernel<Binomial, ComputeTypes<double>>;
PUONE_KERNEL(standard_gamma) = randomKernel<Gamma, ComputeTypes<double>>;
PUONE_KERNEL(multinomial) = multinomial;
PUONE_KERNEL(poisson) = randomKernel<Poisson, ComputeTypes<double>>;
PUONE_KERNEL(randperm) = randperm;

} // namespace puone::kernels::PUONE_ISA
