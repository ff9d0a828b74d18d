// SPDX-License-Identifier: BSD-3-Clause
// The kernels against plain references. test/test_sim_kernels.py compares the casts with torch.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "kernels/types.h"
#include "sim.h"

using namespace puone::test;
using puone::kernels::baseline::BFloat16;
using puone::kernels::baseline::Half;

namespace {

struct Layout {
  std::vector<int64_t> sizes;       // innermost first
  std::vector<int64_t> out_strides; // elements
  std::vector<int64_t> in_strides;
  int64_t out_offset = 0; // elements, for negative strides
  int64_t in_offset = 0;
  int64_t extent = 0; // elements of each buffer
};

template <class Args>
void describe(
    Args& args, const Layout& layout, int64_t element_size, unsigned char* out, unsigned char* in) {
  args.ndim = static_cast<int32_t>(layout.sizes.size());
  for (size_t d = 0; d < layout.sizes.size(); ++d) {
    args.sizes[d] = layout.sizes[d];
    args.out.strides[d] = layout.out_strides[d] * element_size;
    args.in.strides[d] = layout.in_strides[d] * element_size;
  }
  args.out.data = out + layout.out_offset * element_size;
  args.in.data = in + layout.in_offset * element_size;
}

/// Calls body(out index, in index) for every element of the layout.
template <class Body>
void forElements(const Layout& layout, const Body& body) {
  const int64_t count =
      std::accumulate(layout.sizes.begin(), layout.sizes.end(), int64_t{1}, std::multiplies<>());
  for (int64_t linear = 0; linear < count; ++linear) {
    int64_t rest = linear;
    int64_t out = layout.out_offset;
    int64_t in = layout.in_offset;
    for (size_t d = 0; d < layout.sizes.size(); ++d) {
      out += rest % layout.sizes[d] * layout.out_strides[d];
      in += rest % layout.sizes[d] * layout.in_strides[d];
      rest /= layout.sizes[d];
    }
    body(out, in);
  }
}

const std::vector<Layout> kLayouts = {
    {{}, {}, {}, 0, 0, 4},                                         // one element
    {{0}, {1}, {1}, 0, 0, 4},                                      // none
    {{1000}, {1}, {1}, 0, 0, 1000},                                // contiguous
    {{500}, {2}, {1}, 0, 0, 1000},                                 // strided out
    {{500}, {1}, {2}, 0, 0, 1000},                                 // strided in
    {{300}, {1}, {0}, 0, 7, 300},                                  // broadcast
    {{300}, {1}, {-1}, 0, 299, 300},                               // reversed
    {{40, 30}, {1, 40}, {30, 1}, 0, 0, 1200},                      // transposed
    {{40, 30}, {1, 40}, {1, 40}, 0, 0, 1200},                      // merges to one row
    {{7, 1, 5, 3}, {1, 99, 7, 35}, {15, 0, 3, 1}, 0, 0, 105},      // permuted, size 1
    {{8, 9, 10}, {-1, 8, -72}, {90, -10, 1}, 7 + 72 * 9, 80, 720}, // signs mixed
    {{300, 400}, {400, 1}, {1, 300}, 0, 0, 120000},                // over several cores
    {{200000}, {1}, {1}, 0, 0, 200000},
};

void checkCopyBits(Sim& sim, puone_stream stream, const Layout& layout, int64_t size) {
  const auto bytes = static_cast<size_t>(layout.extent * size);
  std::vector<unsigned char> in(bytes);
  std::vector<unsigned char> expected(bytes, 0xcd);
  std::vector<unsigned char> actual(bytes);
  std::mt19937 random(static_cast<unsigned>(bytes));
  for (auto& byte : in) byte = static_cast<unsigned char>(random());
  forElements(layout, [&](int64_t o, int64_t i) {
    std::memcpy(
        &expected[static_cast<size_t>(o * size)],
        &in[static_cast<size_t>(i * size)],
        static_cast<size_t>(size));
  });
  auto* device_in = sim.memory<unsigned char>(bytes);
  auto* device_out = sim.memory<unsigned char>(bytes, 1);
  sim.write(device_in, in.data(), bytes, stream);
  OK(hal().memset_async(device_out, 0xcd, bytes, stream));
  puone_copy_bits_args args{};
  describe(args, layout, size, device_out, device_in);
  args.element_size = static_cast<int32_t>(size);
  sim.launch("copy_bits", &args, sizeof args, stream);
  sim.read(actual.data(), device_out, bytes, stream);
  OK(hal().stream_synchronize(stream));
  CHECK(actual == expected);
  OK(hal().free(device_in));
  OK(hal().free(device_out));
}

/// Copies `in` elementwise on the device, cast from one type to another.
template <class Out, class In>
std::vector<Out> castOnDevice(
    Sim& sim,
    puone_stream stream,
    puone_dtype out_dtype,
    puone_dtype in_dtype,
    const std::vector<In>& in,
    bool conj = false,
    bool neg = false) {
  std::vector<Out> out(in.size());
  auto* device_in = sim.memory<In>(in.size());
  auto* device_out = sim.memory<Out>(in.size());
  sim.write(device_in, in.data(), in.size() * sizeof(In), stream);
  puone_copy_args args{};
  args.ndim = 1;
  args.out_dtype = out_dtype;
  args.in_dtype = in_dtype;
  args.conj = conj;
  args.neg = neg;
  args.sizes[0] = static_cast<int64_t>(in.size());
  args.out = {device_out, {sizeof(Out)}};
  args.in = {device_in, {sizeof(In)}};
  sim.launch("copy", &args, sizeof args, stream);
  sim.read(out.data(), device_out, out.size() * sizeof(Out), stream);
  OK(hal().stream_synchronize(stream));
  OK(hal().free(device_in));
  OK(hal().free(device_out));
  return out;
}

/// The value nearest to `value` among those whose bit patterns surround it, ties to even.
uint16_t nearestBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto low = static_cast<uint16_t>(bits >> 16);
  const auto high = static_cast<uint16_t>(low + 1);
  const auto widen = [](uint16_t b) {
    // The pattern of infinity stands for the next power of two when rounding.
    return (b & 0x7fff) == 0x7f80 ? std::copysign(0x1p128, b & 0x8000 ? -1.0 : 1.0)
                                  : double{std::bit_cast<float>(uint32_t{b} << 16)};
  };
  const double down = std::fabs(double{value} - widen(low));
  const double up = std::fabs(double{value} - widen(high));
  if (down != up) return down < up ? low : high;
  return (low & 1) == 0 ? low : high;
}

std::vector<float> interestingFloats() {
  std::vector<float> values;
  std::mt19937 random(3);
  for (int i = 0; i < 200000; ++i) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (value == value) values.push_back(value);
  }
  // Around every half: the value, its neighbours and the midpoints, where rounding decides.
  for (uint32_t half = 0; half < 0x7c00; ++half) {
    const float value = puone::kernels::baseline::toFloat(Half{static_cast<uint16_t>(half)});
    const float next = puone::kernels::baseline::toFloat(Half{static_cast<uint16_t>(half + 1)});
    const float middle = std::isinf(next) ? 65520.0f : (value + next) / 2;
    for (const float f :
         {value, middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e9f)}) {
      values.push_back(f);
      values.push_back(-f);
    }
  }
  const float infinity = std::numeric_limits<float>::infinity();
  values.insert(values.end(), {infinity, -infinity, 0.0f, -0.0f, 1e-45f, -1e-45f, 3.4e38f});
  return values;
}

} // namespace

TEST(copy_bits_moves_every_layout_and_element_size) {
  Sim sim;
  const puone_stream stream = sim.stream();
  for (const Layout& layout : kLayouts) {
    for (const int64_t size : {1, 2, 4, 8, 16}) checkCopyBits(sim, stream, layout, size);
  }
}

TEST(fill_writes_every_layout_and_element_size_and_nothing_else) {
  Sim sim;
  const puone_stream stream = sim.stream();
  for (const Layout& layout : kLayouts) {
    for (const int64_t size : {1, 2, 4, 8, 16}) {
      const auto bytes = static_cast<size_t>(layout.extent * size);
      std::vector<unsigned char> expected(bytes, 0xee);
      std::vector<unsigned char> actual(bytes);
      auto* device = sim.memory<unsigned char>(bytes);
      OK(hal().memset_async(device, 0xee, bytes, stream));
      puone_fill_args args{};
      args.ndim = static_cast<int32_t>(layout.sizes.size());
      args.element_size = static_cast<int32_t>(size);
      args.out.data = device + layout.out_offset * size;
      for (size_t i = 0; i < 16; ++i) args.value[i] = static_cast<unsigned char>(i * 7 + 1);
      for (size_t d = 0; d < layout.sizes.size(); ++d) {
        args.sizes[d] = layout.sizes[d];
        args.out.strides[d] = layout.out_strides[d] * size;
      }
      forElements(layout, [&](int64_t o, int64_t) {
        std::memcpy(
            &expected[static_cast<size_t>(o * size)], args.value, static_cast<size_t>(size));
      });
      sim.launch("fill", &args, sizeof args, stream);
      sim.read(actual.data(), device, bytes, stream);
      OK(hal().stream_synchronize(stream));
      CHECK(actual == expected);
      OK(hal().free(device));
    }
  }
}

TEST(half_widens_exactly) {
  Sim sim;
  const puone_stream stream = sim.stream();
  std::vector<uint16_t> halves(65536);
  std::iota(halves.begin(), halves.end(), uint16_t{0});
  const auto floats = castOnDevice<float>(sim, stream, PUONE_FLOAT32, PUONE_FLOAT16, halves);
  int wrong = 0;
  for (size_t i = 0; i < halves.size(); ++i) {
    const auto expected = static_cast<float>(std::bit_cast<_Float16>(halves[i]));
    const bool same = std::isnan(expected)
                          ? std::isnan(floats[i])
                          : std::bit_cast<uint32_t>(expected) == std::bit_cast<uint32_t>(floats[i]);
    if (!same) ++wrong;
  }
  CHECK_EQ(wrong, 0);
}

TEST(floats_narrow_to_half_and_bfloat16_with_ties_to_even) {
  Sim sim;
  const puone_stream stream = sim.stream();
  const std::vector<float> floats = interestingFloats();
  const auto halves = castOnDevice<uint16_t>(sim, stream, PUONE_FLOAT16, PUONE_FLOAT32, floats);
  const auto brains = castOnDevice<uint16_t>(sim, stream, PUONE_BFLOAT16, PUONE_FLOAT32, floats);
  int wrong_halves = 0;
  int wrong_brains = 0;
  for (size_t i = 0; i < floats.size(); ++i) {
    if (halves[i] != std::bit_cast<uint16_t>(static_cast<_Float16>(floats[i]))) ++wrong_halves;
    const uint16_t expected = std::isinf(floats[i])
                                  ? static_cast<uint16_t>(std::bit_cast<uint32_t>(floats[i]) >> 16)
                                  : nearestBFloat16(floats[i]);
    if (brains[i] != expected) ++wrong_brains;
  }
  CHECK_EQ(wrong_halves, 0);
  CHECK_EQ(wrong_brains, 0);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> nans(40, nan);
  for (const uint16_t bits :
       castOnDevice<uint16_t>(sim, stream, PUONE_FLOAT16, PUONE_FLOAT32, nans)) {
    CHECK((bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) != 0);
  }
  for (const uint16_t bits :
       castOnDevice<uint16_t>(sim, stream, PUONE_BFLOAT16, PUONE_FLOAT32, nans)) {
    CHECK((bits & 0x7f80) == 0x7f80 && (bits & 0x7f) != 0);
  }
}

TEST(casts_follow_static_cast_with_torchs_particulars) {
  Sim sim;
  const puone_stream stream = sim.stream();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(
      (castOnDevice<uint8_t>(
           sim, stream, PUONE_BOOL, PUONE_FLOAT32, std::vector<float>{0, -0.0f, 0.5f, nan, -1}) ==
       std::vector<uint8_t>{0, 0, 1, 1, 1}));
  CHECK(
      (castOnDevice<uint8_t>(
           sim, stream, PUONE_UINT8, PUONE_FLOAT32, std::vector<float>{-1, 300, 3.9f}) ==
       std::vector<uint8_t>{255, 44, 3}));
  CHECK(
      (castOnDevice<int8_t>(
           sim, stream, PUONE_INT8, PUONE_INT64, std::vector<int64_t>{127, 128, -129}) ==
       std::vector<int8_t>{127, -128, 127}));
  CHECK((
      castOnDevice<double>(sim, stream, PUONE_FLOAT64, PUONE_BOOL, std::vector<uint8_t>{0, 1, 7}) ==
      std::vector<double>{0, 1, 1}));
  using C = puone::kernels::baseline::Complex<float>;
  const std::vector<C> complex = {{1, 2}, {0, 3}, {0, 0}};
  CHECK(
      (castOnDevice<float>(sim, stream, PUONE_FLOAT32, PUONE_COMPLEX64, complex) ==
       std::vector<float>{1, 0, 0}));
  CHECK(
      (castOnDevice<uint8_t>(sim, stream, PUONE_BOOL, PUONE_COMPLEX64, complex) ==
       std::vector<uint8_t>{1, 1, 0}));
  const auto made =
      castOnDevice<C>(sim, stream, PUONE_COMPLEX64, PUONE_INT32, std::vector<int32_t>{5, -6});
  CHECK(made[1].real == -6.0f && made[1].imaginary == 0.0f);
}

TEST(conj_and_neg_apply_to_the_input) {
  Sim sim;
  const puone_stream stream = sim.stream();
  using C = puone::kernels::baseline::Complex<double>;
  std::vector<C> in;
  for (int i = 0; i < 1000; ++i) in.push_back({1.0 * i, -2.0 * i});
  for (const bool conj : {false, true}) {
    for (const bool neg : {false, true}) {
      const auto out =
          castOnDevice<C>(sim, stream, PUONE_COMPLEX128, PUONE_COMPLEX128, in, conj, neg);
      const double sign = neg ? -1 : 1;
      CHECK_EQ(out[999].real, sign * 999);
      CHECK_EQ(out[999].imaginary, sign * (conj ? 1998 : -1998));
    }
  }
  const auto halves = castOnDevice<uint16_t>(
      sim, stream, PUONE_FLOAT16, PUONE_FLOAT32, std::vector<float>{1.0f}, false, true);
  CHECK_EQ(halves[0], 0xbc00);
  const auto ints = castOnDevice<int64_t>(
      sim, stream, PUONE_INT64, PUONE_INT64, std::vector<int64_t>{INT64_MIN, 4}, true, true);
  CHECK_EQ(ints[0], INT64_MIN);
  CHECK_EQ(ints[1], -4);
}
