// SPDX-License-Identifier: BSD-3-Clause
// What random numbers are made of: the generator against its published answers, the elementary
// functions against the C library's.
#include <array>
#include <cmath>
#include <cstdint>

#include "check.h"
#include "kernels/philox.h"
#include "kernels/portable_math.h"
#include "kernels/uniform_bits.h"

namespace kernels = puone::kernels::baseline;

namespace {

uint64_t join(uint32_t low, uint32_t high) {
  return uint64_t{high} << 32 | low;
}

struct KnownAnswer {
  std::array<uint32_t, 4> counter;
  std::array<uint32_t, 2> key;
  std::array<uint32_t, 4> answer;
};

// The vectors "philox4x32 10" of Random123's kat_vectors.
constexpr KnownAnswer kKnownAnswers[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

/// |value - expected| in units of the last place of T at `expected`.
template <class T>
double unitsOff(T value, long double expected) {
  const T rounded = static_cast<T>(expected);
  const T unit = std::nextafter(std::fabs(rounded), T(HUGE_VAL)) - std::fabs(rounded);
  return static_cast<double>(std::fabs(value - expected) / unit);
}

template <class T>
double worstLogarithm(T from, T factor) {
  double worst = 0;
  for (T x = from; x < T(1e30); x *= factor) {
    worst = std::fmax(worst, unitsOff(kernels::logarithm(x), std::log((long double)x)));
  }
  return worst;
}

template <class T>
double worstExponential(T limit, T step) {
  double worst = 0;
  for (T x = -limit; x < limit; x += step) {
    worst = std::fmax(worst, unitsOff(kernels::exponential(x), std::exp((long double)x)));
  }
  return worst;
}

template <class T>
double worstCircle() {
  double worst = 0;
  for (T x = T(-0.785); x < T(0.785); x += T(0.0001234)) {
    const auto p = kernels::cosineSine(x);
    worst = std::fmax(worst, unitsOff(p.x, std::cos((long double)x)));
    worst = std::fmax(worst, unitsOff(p.y, std::sin((long double)x)));
  }
  return worst;
}

} // namespace

TEST(philox_gives_the_published_answers) {
  for (const KnownAnswer& known : kKnownAnswers) {
    const auto block = kernels::philox(
        join(known.counter[0], known.counter[1]),
        join(known.counter[2], known.counter[3]),
        join(known.key[0], known.key[1]));
    for (int i = 0; i < 4; ++i) CHECK(block.words[i] == known.answer[i]);
  }
}

TEST(portable_functions_are_right_to_a_few_units_in_the_last_place) {
  CHECK(worstLogarithm<float>(1e-30f, 1.00123f) < 3);
  CHECK(worstLogarithm<double>(1e-300, 1.0123) < 3);
  CHECK(worstExponential<float>(87, 0.0123f) < 3);
  CHECK(worstExponential<double>(700, 0.0123) < 3);
  CHECK(worstCircle<float>() < 3);
  CHECK(worstCircle<double>() < 3);
}

TEST(portable_exponentials_end_in_zero_and_infinity) {
  CHECK(kernels::exponential(-1000.0f) == 0);
  CHECK(kernels::exponential(-1e300) == 0);
  CHECK(std::isinf(kernels::exponential(1000.0f)));
  CHECK(std::isinf(kernels::exponential(1e300)));
  CHECK(kernels::exponential(0.0) == 1);
}

TEST(unit_intervals_are_open_where_they_must_be) {
  for (const uint32_t bits : {0u, 1u, 0x7fffffffu, 0x80000000u, ~1u, ~0u}) {
    CHECK(kernels::unit(bits) >= 0 && kernels::unit(bits) < 1);
    CHECK(kernels::openUnit(bits) > 0 && kernels::openUnit(bits) < 1);
    const uint64_t wide = join(bits, bits);
    CHECK(kernels::unit(wide) >= 0 && kernels::unit(wide) < 1);
    CHECK(kernels::openUnit(wide) > 0 && kernels::openUnit(wide) < 1);
    const auto point = kernels::circlePoint<float>(bits);
    CHECK(point.x != 0 && point.y != 0);
    CHECK(std::fabs(point.x * point.x + point.y * point.y - 1) < 1e-6f);
  }
}

TEST(high_products_of_devices_are_those_of_hosts) {
  uint64_t a = 1, b = 3;
  for (int i = 0; i < 1000; ++i) {
    a = a * 6364136223846793005u + 1442695040888963407u;
    b = b * 2862933555777941757u + 3037000493u;
    CHECK(kernels::highProductOfHalves(a, b) == kernels::highProduct(a, b));
  }
}
