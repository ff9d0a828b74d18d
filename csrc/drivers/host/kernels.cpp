// SPDX-License-Identifier: BSD-3-Clause
// The first kernels: they move elements and cast them, so that copies and fills stay on the device;
// and `add`, to show how one that computes is written. An operator whose kernel is missing runs on
// the CPU; add others in the order in which the suite asks for them. csrc/hal/kernels.yaml says
// what each computes, and of which types.
#include "drivers/host/kernels.h"

#include <algorithm>
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
  const auto size = static_cast<size_t>(a.element_size);
  const int64_t stride = a.out.strides[0];
  forEachRow<1>(a.ndim, a.sizes, {&a.out}, [&](const auto& offsets, int64_t length) {
    std::byte* row = out + offsets[0];
    std::memcpy(row, a.value, size);
    int64_t done = 1;
    if (stride == a.element_size) { // what is filled is copied behind itself
      for (int64_t more = 0; done < length; done += more) {
        more = std::min(done, length - done);
        std::memcpy(row + done * stride, row, static_cast<size_t>(more) * size);
      }
    }
    for (; done < length; ++done) std::memcpy(row + done * stride, a.value, size);
  });
}

using types::kTypes;
using types::Types;

/// One row of "copy": its elements, and the bytes from one to the next.
struct Row {
  std::byte* out;
  int64_t out_stride;
  const std::byte* in;
  int64_t in_stride;
  int64_t length;
};
using Cast = void (*)(const Row& row, bool conj, bool neg);

template <size_t kOut, size_t kIn>
void castRow(const Row& row, bool conj, bool neg) {
  for (int64_t i = 0; i < row.length; ++i) {
    auto value = types::load<std::tuple_element_t<kIn, Types>>(row.in + i * row.in_stride);
    if (conj) value = types::conjugated(value);
    if (neg) value = types::negated(value);
    types::store(
        row.out + i * row.out_stride, types::cast<std::tuple_element_t<kOut, Types>>(value));
  }
}

/// Those of all pairs of types, the output's first.
template <size_t... kPairs>
constexpr std::array<Cast, sizeof...(kPairs)> casts(std::index_sequence<kPairs...>) {
  return {castRow<kPairs / kTypes, kPairs % kTypes>...};
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
  forEachRow<2>(a.ndim, a.sizes, {&a.out, &a.in}, [&](const auto& offsets, int64_t length) {
    const Row row{out + offsets[0], a.out.strides[0], in + offsets[1], a.in.strides[0], length};
    cast(row, a.conj != 0, a.neg != 0);
  });
}

void copyBits(const void* args) {
  const auto& a = *static_cast<const puone_copy_bits_args*>(args);
  auto* out = static_cast<std::byte*>(a.out.data);
  const auto* in = static_cast<const std::byte*>(a.in.data);
  const auto size = static_cast<size_t>(a.element_size);
  const int64_t to = a.out.strides[0], from = a.in.strides[0];
  const bool dense = to == a.element_size && from == a.element_size;
  forEachRow<2>(a.ndim, a.sizes, {&a.out, &a.in}, [&](const auto& offsets, int64_t length) {
    if (dense) {
      std::memcpy(out + offsets[0], in + offsets[1], static_cast<size_t>(length) * size);
      return;
    }
    for (int64_t i = 0; i < length; ++i) {
      std::memcpy(out + offsets[0] + i * to, in + offsets[1] + i * from, size);
    }
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
