// SPDX-License-Identifier: BSD-3-Clause
// The first kernels: they move elements, whatever their type. An operator whose kernel is missing
// runs on the CPU, so add others in the order in which the suite asks for them. The comment of an
// argument struct in kernels/args.h says what its kernel computes.
#include "drivers/host/kernels.h"

#include <array>
#include <chrono>
#include <cstring>
#include <thread>

#include "kernels/args.h"

namespace puone::host {
namespace {

constexpr uint64_t kAnyType = ~uint64_t{0};

/// Calls `visit` with the byte offset of each element in each of N operands.
template <size_t N, class Visit>
void forEach(
    int32_t ndim,
    const int64_t* sizes,
    const std::array<const puone_operand*, N>& operands,
    const Visit& visit) {
  for (int32_t d = 0; d < ndim; ++d) {
    if (sizes[d] == 0) return;
  }
  std::array<int64_t, PUONE_MAX_DIMS> index{};
  std::array<int64_t, N> offsets{};
  while (true) {
    visit(offsets);
    int32_t d = 0;
    for (; d < ndim; ++d) {
      const bool carries = ++index[d] == sizes[d];
      for (size_t i = 0; i < N; ++i) {
        const int64_t stride = operands[i]->strides[d];
        offsets[i] += carries ? -stride * (sizes[d] - 1) : stride;
      }
      if (!carries) break;
      index[d] = 0;
    }
    if (d == ndim) return;
  }
}

void fill(const void* args) {
  const auto& a = *static_cast<const puone_fill_args*>(args);
  auto* out = static_cast<std::byte*>(a.out.data);
  forEach<1>(a.ndim, a.sizes, {&a.out}, [&](const auto& offsets) {
    std::memcpy(out + offsets[0], a.value, static_cast<size_t>(a.element_size));
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

constexpr Kernel kKernels[] = {
    {"fill", 1, kAnyType, sizeof(puone_fill_args), fill},
    {"copy_bits", 1, kAnyType, sizeof(puone_copy_bits_args), copyBits},
    {"delay", 1, kAnyType, sizeof(puone_delay_args), delay},
};

} // namespace

std::span<const Kernel> kernels() {
  return kKernels;
}

} // namespace puone::host
