// SPDX-License-Identifier: BSD-3-Clause
// Floating-point arithmetic (PTX ISA 9.7.3). Compiled without contraction.
#include "floats.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "operations.h"

namespace puone::ptx {
namespace {

// ---- exact: rounded once, as IEEE 754 says ----

enum class Sum {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kMultiplyAdd,
  kRoot
};

/// One operation, rounded in the direction that is set. Values pass through memory, so that the
/// compiler computes nothing before the direction is set.
template <class T, Sum kSum>
T computed(T a, T b, T c) {
  volatile T x = a, y = b, z = c;
  volatile T result;
  if constexpr (kSum == Sum::kAdd) result = x + y;
  if constexpr (kSum == Sum::kSubtract) result = x - y;
  if constexpr (kSum == Sum::kMultiply) result = x * y;
  if constexpr (kSum == Sum::kDivide) result = x / y;
  if constexpr (kSum == Sum::kMultiplyAdd) result = std::fma(T(x), T(y), T(z));
  if constexpr (kSum == Sum::kRoot) result = std::sqrt(T(x));
  return result;
}

template <class T, Sum kSum, int kMode, bool kFlush, bool kSaturate>
T exact(T a, T b, T c) {
  if constexpr (kFlush) a = flushed(a), b = flushed(b), c = flushed(c);
  T result;
  if constexpr (kMode == FE_TONEAREST) {
    if constexpr (kSum == Sum::kAdd) result = a + b;
    if constexpr (kSum == Sum::kSubtract) result = a - b;
    if constexpr (kSum == Sum::kMultiply) result = a * b;
    if constexpr (kSum == Sum::kDivide) result = a / b;
    if constexpr (kSum == Sum::kMultiplyAdd) result = std::fma(a, b, c);
    if constexpr (kSum == Sum::kRoot) result = std::sqrt(a);
  } else {
    const Rounding rounding(kMode);
    result = computed<T, kSum>(a, b, c);
  }
  if constexpr (kFlush) result = flushed(result);
  if constexpr (kSaturate) result = result > 0 ? std::min(result, T(1)) : T(0); // of NaN: 0
  return canonical(result);
}

template <class T, Sum kSum, int kMode, bool kFlush, bool kSaturate>
Operation made() {
  if constexpr (kSum == Sum::kMultiplyAdd) {
    return lanewise<exact<T, kSum, kMode, kFlush, kSaturate>>();
  } else if constexpr (kSum == Sum::kRoot) {
    return lanewise<[](T a) { return exact<T, kSum, kMode, kFlush, kSaturate>(a, 0, 0); }>();
  } else {
    return lanewise<[](T a, T b) { return exact<T, kSum, kMode, kFlush, kSaturate>(a, b, 0); }>();
  }
}

template <class T, Sum kSum, int kMode>
void addMode(Operations& table, const std::string& name, const std::string& type) {
  table[name + "." + type] = made<T, kSum, kMode, false, false>();
  if constexpr (sizeof(T) == 4) {
    table[name + ".ftz." + type] = made<T, kSum, kMode, true, false>();
    table[name + ".sat." + type] = made<T, kSum, kMode, false, true>();
    table[name + ".ftz.sat." + type] = made<T, kSum, kMode, true, true>();
  }
}

template <class T, Sum kSum>
void addExact(Operations& table, const std::string& name, const std::string& type) {
  addMode<T, kSum, FE_TONEAREST>(table, name + ".rn", type);
  addMode<T, kSum, FE_TOWARDZERO>(table, name + ".rz", type);
  addMode<T, kSum, FE_DOWNWARD>(table, name + ".rm", type);
  addMode<T, kSum, FE_UPWARD>(table, name + ".rp", type);
  // Without a direction: to nearest even. Only these may be without.
  if constexpr (kSum == Sum::kAdd || kSum == Sum::kSubtract || kSum == Sum::kMultiply) {
    addMode<T, kSum, FE_TONEAREST>(table, name, type);
  }
}

template <class T, int kMode>
void addReciprocal(Operations& table, const std::string& name, const std::string& type) {
  table[name + "." + type] =
      lanewise<[](T b) { return exact<T, Sum::kDivide, kMode, false, false>(1, b, 0); }>();
  if constexpr (sizeof(T) == 4) {
    table[name + ".ftz." + type] =
        lanewise<[](T b) { return exact<T, Sum::kDivide, kMode, true, false>(1, b, 0); }>();
  }
}

// ---- least, greatest, signs ----

template <class T, bool kGreatest, bool kFlush, bool kNan>
T extreme(T a, T b) {
  if constexpr (kFlush) a = flushed(a), b = flushed(b);
  if (a != a || b != b) return kNan || (a != a && b != b) ? canonical(T(NAN)) : a != a ? b : a;
  // -0 is less than +0.
  if (a == b) return std::signbit(a) == kGreatest ? b : a;
  return (a < b) == kGreatest ? b : a;
}

template <class T>
T withSignOf(T sign, T magnitude) {
  return std::copysign(magnitude, sign);
}

// ---- approximations ----

/// Where in the documented bound results lie: -1, 0 or 1, as PUONE_PTX_APPROXIMATE says.
int direction() {
  static const int chosen = [] {
    const char* const text = std::getenv("PUONE_PTX_APPROXIMATE");
    return text == nullptr ? 0 : std::atoi(text);
  }();
  return chosen;
}

float approximately(double exact) {
  const auto nearest = static_cast<float>(exact);
  if (direction() == 0 || !std::isnormal(nearest)) return canonical(nearest); // bounds are relative
  return std::nextafter(nearest, direction() * std::numeric_limits<float>::infinity());
}

/// The upper half of the exact result: what rcp and rsqrt give of doubles.
double grossly(double exact) {
  const auto bits = std::bit_cast<uint64_t>(exact);
  if (exact != exact) return canonical(exact);
  return flushed(std::bit_cast<double>(bits & 0xffffffff00000000));
}

template <double (*kFunction)(double), bool kFlush>
float approximated(float a) {
  if constexpr (kFlush) a = flushed(a);
  const float result = approximately(kFunction(a));
  return kFlush ? flushed(result) : result;
}

double reciprocal(double x) {
  return 1 / x;
}
double reciprocalRoot(double x) {
  return 1 / std::sqrt(x);
}

template <double (*kFunction)(double)>
void addApproximation(Operations& table, const std::string& name) {
  table[name + ".approx.f32"] = lanewise<approximated<kFunction, false>>();
  table[name + ".approx.ftz.f32"] = lanewise<approximated<kFunction, true>>();
}

template <bool kFlush>
float approximateQuotient(float a, float b) {
  if constexpr (kFlush) a = flushed(a), b = flushed(b);
  // For |b| in (2^126, 2^128): zero, or no number if `a` is infinite.
  if (std::fabs(b) > 0x1p126f && std::isfinite(b)) {
    return std::isinf(a) ? canonical(NAN) : std::copysign(0.0f, a) * std::copysign(1.0f, b);
  }
  const float result = approximately(static_cast<double>(a) / b);
  return kFlush ? flushed(result) : result;
}

template <class T>
void addOfType(Operations& table, const std::string& type) {
  addExact<T, Sum::kAdd>(table, "add", type);
  addExact<T, Sum::kSubtract>(table, "sub", type);
  addExact<T, Sum::kMultiply>(table, "mul", type);
  addExact<T, Sum::kDivide>(table, "div", type);
  addExact<T, Sum::kMultiplyAdd>(table, "fma", type);
  addExact<T, Sum::kMultiplyAdd>(table, "mad", type);
  addExact<T, Sum::kRoot>(table, "sqrt", type);
  addReciprocal<T, FE_TONEAREST>(table, "rcp.rn", type);
  addReciprocal<T, FE_TOWARDZERO>(table, "rcp.rz", type);
  addReciprocal<T, FE_DOWNWARD>(table, "rcp.rm", type);
  addReciprocal<T, FE_UPWARD>(table, "rcp.rp", type);
  table["min." + type] = lanewise<extreme<T, false, false, false>>();
  table["max." + type] = lanewise<extreme<T, true, false, false>>();
  table["neg." + type] = lanewise<[](T a) -> T { return -a; }>();
  table["abs." + type] = lanewise<[](T a) -> T { return std::fabs(a); }>();
  table["copysign." + type] = lanewise<withSignOf<T>>();
  table["testp.finite." + type] = lanewise<[](T a) -> bool { return std::isfinite(a); }>();
  table["testp.infinite." + type] = lanewise<[](T a) -> bool { return std::isinf(a); }>();
  table["testp.number." + type] = lanewise<[](T a) -> bool { return a == a; }>();
  table["testp.notanumber." + type] = lanewise<[](T a) -> bool { return a != a; }>();
  table["testp.normal." + type] = lanewise<[](T a) -> bool { return std::isnormal(a); }>();
  table["testp.subnormal." + type] =
      lanewise<[](T a) -> bool { return std::fpclassify(a) == FP_SUBNORMAL; }>();
}

} // namespace

void addFloats(Operations& table) {
  addOfType<float>(table, "f32");
  addOfType<double>(table, "f64");
  table["min.ftz.f32"] = lanewise<extreme<float, false, true, false>>();
  table["max.ftz.f32"] = lanewise<extreme<float, true, true, false>>();
  table["min.NaN.f32"] = lanewise<extreme<float, false, false, true>>();
  table["max.NaN.f32"] = lanewise<extreme<float, true, false, true>>();
  table["min.ftz.NaN.f32"] = lanewise<extreme<float, false, true, true>>();
  table["max.ftz.NaN.f32"] = lanewise<extreme<float, true, true, true>>();
  table["neg.ftz.f32"] = lanewise<[](float a) { return -flushed(a); }>();
  table["abs.ftz.f32"] = lanewise<[](float a) { return std::fabs(flushed(a)); }>();
  addApproximation<std::exp2>(table, "ex2");
  addApproximation<std::log2>(table, "lg2");
  addApproximation<std::sin>(table, "sin");
  addApproximation<std::cos>(table, "cos");
  addApproximation<std::sqrt>(table, "sqrt");
  addApproximation<reciprocal>(table, "rcp");
  addApproximation<reciprocalRoot>(table, "rsqrt");
  table["tanh.approx.f32"] = lanewise<approximated<std::tanh, false>>();
  table["div.approx.f32"] = lanewise<approximateQuotient<false>>();
  table["div.approx.ftz.f32"] = lanewise<approximateQuotient<true>>();
  table["div.full.f32"] =
      lanewise<[](float a, float b) { return approximately(static_cast<double>(a) / b); }>();
  table["rcp.approx.ftz.f64"] = lanewise<[](double a) { return grossly(1 / flushed(a)); }>();
  table["rsqrt.approx.ftz.f64"] =
      lanewise<[](double a) { return grossly(1 / std::sqrt(flushed(a))); }>();
  table["rsqrt.approx.f64"] = lanewise<[](double a) { return grossly(1 / std::sqrt(a)); }>();
}

} // namespace puone::ptx
