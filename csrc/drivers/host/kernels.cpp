// SPDX-License-Identifier: BSD-3-Clause
// The first kernels: they move elements and cast them, so that copies and fills stay on the device;
// and `add`, to show how one that computes is written. An operator whose kernel is missing runs on
// the CPU; add others in the order in which the suite asks for them. csrc/hal/kernels.yaml says
// what each computes, and of which types.
#include "drivers/host/kernels.h"

#include <array>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "drivers/common/error.h"
#include "drivers/host/elementwise.h"
#include "drivers/host/strided.h"
#include "kernels/args.h"
#include "kernels/arithmetic.h"
#include "kernels/cast.h"

namespace puone::host {
namespace {

constexpr uint64_t kAnyType = ~uint64_t{0};

void fill(const void* args) {
  const auto& a = *static_cast<const puone_fill_args*>(args);
  auto* out = static_cast<std::byte*>(a.out.data);
  forEach<1>(a.ndim, a.sizes, {&a.out}, [&](const auto& offsets) {
    std::memcpy(out + offsets[0], a.value, static_cast<size_t>(a.element_size));
  });
}

using types::kTypes;
using types::Types;

/// One element of "copy".
using Cast = void (*)(std::byte* out, const std::byte* in, bool conj, bool neg);

template <size_t kOut, size_t kIn>
void castElement(std::byte* out, const std::byte* in, bool conj, bool neg) {
  auto value = types::load<std::tuple_element_t<kIn, Types>>(in);
  if (conj) value = types::conjugated(value);
  if (neg) value = types::negated(value);
  types::store(out, types::cast<std::tuple_element_t<kOut, Types>>(value));
}

/// Those of all pairs of types, the output's first.
template <size_t... kPairs>
constexpr std::array<Cast, sizeof...(kPairs)> casts(std::index_sequence<kPairs...>) {
  return {castElement<kPairs / kTypes, kPairs % kTypes>...};
}

void copy(const void* args) {
  static constexpr auto kCasts = casts(std::make_index_sequence<kTypes * kTypes>());
  const auto& a = *static_cast<const puone_copy_args*>(args);
  for (const int32_t dtype : {a.out_dtype, a.in_dtype}) {
    if (dtype < 0 || dtype >= static_cast<int32_t>(kTypes)) {
      fail(PUONE_INTERNAL, "there is no element type %d", static_cast<int>(dtype));
    }
  }
  const Cast cast =
      kCasts[static_cast<size_t>(a.out_dtype) * kTypes + static_cast<size_t>(a.in_dtype)];
  auto* out = static_cast<std::byte*>(a.out.data);
  const auto* in = static_cast<const std::byte*>(a.in.data);
  forEach<2>(a.ndim, a.sizes, {&a.out, &a.in}, [&](const auto& offsets) {
    cast(out + offsets[0], in + offsets[1], a.conj != 0, a.neg != 0);
  });
}

void copyBits(const void* args) {
  const auto& a = *static_cast<const puone_copy_bits_args*>(args);
  auto* out = static_cast<std::byte*>(a.out.data);
  const auto* in = static_cast<const std::byte*>(a.in.data);
  forEach<2>(a.ndim, a.sizes, {&a.out, &a.in}, [&](const auto& offsets) {
    std::memcpy(out + offsets[0], in + offsets[1], static_cast<size_t>(a.element_size));
  });
}

// Nothing but time: for tests that need work that is still pending.
void delay(const void* args) {
  const auto& a = *static_cast<const puone_delay_args*>(args);
  std::this_thread::sleep_for(std::chrono::nanoseconds(a.ns));
}

constexpr auto kAdd = [](auto a, auto b, auto alpha) {
  return types::plus(a, types::times(alpha, b));
};

constexpr Kernel kKernels[] = {
    {"fill", 1, kAnyType, sizeof(puone_fill_args), fill},
    {"copy", 1, kAnyType, sizeof(puone_copy_args), copy},
    {"copy_bits", 1, kAnyType, sizeof(puone_copy_bits_args), copyBits},
    {"delay", 1, kAnyType, sizeof(puone_delay_args), delay},
    elementwiseKernel<kAdd, kNumbers, 2, 1>("add"),
};

} // namespace

std::span<const Kernel> kernels() {
  return kKernels;
}

} // namespace puone::host
