// SPDX-License-Identifier: BSD-3-Clause
// Convolutions of the cuda driver, over the stand-ins for CUDA's runtime and for cuDNN: the library
// gets those that it can do and no others, and the results are right either way.
#include <cstdlib>
#include <thread>
#include <vector>

#include "check.h"
#include "driver.h"
#include "fake_cudnn.h"
#include "fake_library.h"
#include "hal/hal.h"
#include "kernels/args/convolution.h"
#include "workspace.h"

using namespace puone::test;

namespace {

struct Fake : FakeLibrary {
  Fake() : FakeLibrary(PUONE_FAKE_CUDNN) {}
  size_t convolutions() const {
    return function<decltype(&fakeCudnnConvolutions)>("fakeCudnnConvolutions")();
  }
  size_t biases() const {
    return function<decltype(&fakeCudnnBiases)>("fakeCudnnBiases")();
  }
  size_t plans() const {
    return function<decltype(&fakeCudnnPlans)>("fakeCudnnPlans")();
  }
  size_t handles() const {
    return function<decltype(&fakeCudnnHandles)>("fakeCudnnHandles")();
  }
  void refuse(int status) const {
    function<decltype(&fakeCudnnRefuse)>("fakeCudnnRefuse")(status);
  }
};

template <class Body>
void withLibrary(const char* choice, const Body& body) {
  withVariables(
      {{"PUONE_CUDA_BLAS", "none"},
       {"PUONE_CUDA_DNN", choice},
       {"PUONE_STANDIN_LIBRARY", PUONE_FAKE_CUDNN}},
      body);
}

/// Small whole numbers on the device, so that sums are exact.
template <class T>
class Numbers {
 public:
  Numbers(int64_t count, int seed) : values(count) {
    for (int64_t i = 0; i < count; ++i) values[i] = static_cast<T>((i * 7 + seed * 5) % 11);
    OK(hal().malloc(0, bytes(), &data));
    copy(data, values.data(), bytes(), PUONE_MEMCPY_HOST_TO_DEVICE);
  }
  ~Numbers() {
    OK(hal().free(data));
  }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;
  void fetch() {
    copy(values.data(), data, bytes(), PUONE_MEMCPY_DEVICE_TO_HOST);
  }

  std::vector<T> values;
  void* data = nullptr;

 private:
  size_t bytes() const {
    return values.size() * sizeof(T);
  }
};

/// Of one dimension, twice: position p and tap t meet p * step + offset + t * tap_step.
struct Case {
  int64_t positions = 5, source = 5, taps = 3;
  int64_t step = 1, offset = -1, tap_step = 1;
  int64_t groups = 2, rows = 3, channels = 4;
  bool bias = false;
  bool weight_is_turned = false; // [channels][rows] in place of [rows][channels]
};

constexpr Case kPlain{};
/// What the gradient of a convolution by its source is.
constexpr Case kBackwards{.offset = 1, .tap_step = -1, .weight_is_turned = true};

constexpr int64_t kBatch = 2;

template <class T>
T& elementOf(Numbers<T>& of, int64_t plane, int64_t size, int64_t y, int64_t x) {
  return of.values[(plane * size + y) * size + x];
}

/// Calls body(y, x, source_y, source_x, tap_y, tap_x) where a tap meets an element.
template <class Body>
void forMeetings(const Case& test, const Body& body) {
  const auto along = [&](const auto& inner) {
    for (int64_t p = 0; p < test.positions; ++p) {
      for (int64_t t = 0; t < test.taps; ++t) {
        const int64_t at = p * test.step + test.offset + t * test.tap_step;
        if (at >= 0 && at < test.source) inner(p, at, t);
      }
    }
  };
  along([&](int64_t y, int64_t source_y, int64_t tap_y) {
    along([&](int64_t x, int64_t source_x, int64_t tap_x) {
      body(y, x, source_y, source_x, tap_y, tap_x);
    });
  });
}

puone_window windowOf(const Case& test) {
  const auto three = [](int64_t (&to)[3], int64_t value, int64_t absent) {
    to[0] = absent;
    to[1] = to[2] = value;
  };
  puone_window window{};
  three(window.positions, test.positions, 1);
  three(window.source, test.source, 1);
  three(window.taps, test.taps, 1);
  three(window.position_step, test.step, 1);
  three(window.offset, test.offset, 0);
  three(window.tap_step, test.tap_step, 1);
  return window;
}

template <class Args>
puone_status launch(const char* name, const Args& args) {
  puone_kernel kernel = nullptr;
  puone_stream stream = nullptr;
  OK(hal().kernel_find(name, nullptr, &kernel));
  OK(hal().stream_create(0, 0, &stream));
  const Workspace workspace(hal());
  const puone_status status =
      hal().kernel_launch(kernel, &args, sizeof args, stream, workspace.context());
  OK(hal().stream_synchronize(stream));
  OK(hal().stream_destroy(stream));
  return status;
}

/// Runs the convolution and checks every element.
template <class T>
void convolve(puone_dtype dtype, const Case& test) {
  const int64_t taps = test.taps * test.taps;
  const int64_t out_rows = test.groups * test.rows;
  Numbers<T> out(kBatch * out_rows * test.positions * test.positions, 1);
  Numbers<T> source(kBatch * test.groups * test.channels * test.source * test.source, 2);
  Numbers<T> weight(out_rows * test.channels * taps, 3);
  Numbers<T> bias(out_rows, 4);
  puone_convolution_args args{};
  args.dtype = dtype;
  args.batch = kBatch;
  args.groups = test.groups;
  args.rows = test.rows;
  args.channels = test.channels;
  args.window = windowOf(test);
  args.weight_group_stride = test.rows * test.channels * taps;
  args.weight_row_stride = test.weight_is_turned ? taps : test.channels * taps;
  args.weight_channel_stride = test.weight_is_turned ? test.rows * taps : taps;
  args.weight_tap_strides[1] = test.taps;
  args.weight_tap_strides[2] = 1;
  args.out_row_stride = test.positions * test.positions;
  args.out_position_strides[1] = test.positions;
  args.out_position_strides[2] = 1;
  args.out = out.data;
  args.source = source.data;
  args.weight = weight.data;
  args.bias = test.bias ? bias.data : nullptr;
  OK(launch("convolution", args));

  Numbers<T> expected(static_cast<int64_t>(out.values.size()), 0);
  for (int64_t plane = 0; plane < kBatch * out_rows; ++plane) {
    const int64_t row = plane % test.rows, group = plane / test.rows % test.groups;
    const int64_t image = plane / out_rows;
    for (int64_t y = 0; y < test.positions; ++y) {
      for (int64_t x = 0; x < test.positions; ++x) {
        elementOf(expected, plane, test.positions, y, x) =
            test.bias ? bias.values[group * test.rows + row] : T(0);
      }
    }
    for (int64_t c = 0; c < test.channels; ++c) {
      const int64_t of_source = (image * test.groups + group) * test.channels + c;
      const int64_t of_weight = group * args.weight_group_stride + row * args.weight_row_stride +
                                c * args.weight_channel_stride;
      forMeetings(test, [&](int64_t y, int64_t x, int64_t sy, int64_t sx, int64_t ty, int64_t tx) {
        elementOf(expected, plane, test.positions, y, x) +=
            elementOf(source, of_source, test.source, sy, sx) *
            weight.values[of_weight + ty * test.taps + tx];
      });
    }
  }
  out.fetch();
  CHECK(out.values == expected.values);
}

/// Runs the gradient of the weight and checks every element.
template <class T>
void gradientOfWeight(puone_dtype dtype, const Case& test) {
  const int64_t out_rows = test.groups * test.rows;
  Numbers<T> out(out_rows * test.channels * test.taps * test.taps, 1);
  Numbers<T> left(kBatch * out_rows * test.positions * test.positions, 2);
  Numbers<T> source(kBatch * test.groups * test.channels * test.source * test.source, 3);
  puone_convolution_weight_args args{};
  args.dtype = dtype;
  args.batch = kBatch;
  args.groups = test.groups;
  args.rows = test.rows;
  args.channels = test.channels;
  args.window = windowOf(test);
  args.out = out.data;
  args.left = left.data;
  args.source = source.data;
  OK(launch("convolution_weight", args));

  Numbers<T> expected(static_cast<int64_t>(out.values.size()), 0);
  expected.values.assign(expected.values.size(), T(0));
  for (int64_t plane = 0; plane < kBatch * out_rows; ++plane) {
    const int64_t row = plane % out_rows, group = row / test.rows, image = plane / out_rows;
    for (int64_t c = 0; c < test.channels; ++c) {
      const int64_t of_source = (image * test.groups + group) * test.channels + c;
      forMeetings(test, [&](int64_t y, int64_t x, int64_t sy, int64_t sx, int64_t ty, int64_t tx) {
        elementOf(expected, row * test.channels + c, test.taps, ty, tx) +=
            elementOf(left, plane, test.positions, y, x) *
            elementOf(source, of_source, test.source, sy, sx);
      });
    }
  }
  out.fetch();
  CHECK(out.values == expected.values);
}

/// A launch that a library should get, for its status alone.
puone_status launchOne() {
  const Numbers<float> data(1000, 1);
  puone_convolution_weight_args args{};
  args.dtype = PUONE_FLOAT32;
  args.batch = args.groups = 1;
  args.rows = 5;
  args.channels = 2;
  args.window = windowOf(kPlain);
  args.out = args.left = args.source = data.data;
  return launch("convolution_weight", args);
}

} // namespace

TEST(the_library_gets_convolutions_of_floats) {
  withLibrary(PUONE_FAKE_CUDNN, [] {
    const Fake fake;
    convolve<float>(PUONE_FLOAT32, kPlain);
    convolve<double>(PUONE_FLOAT64, kPlain);
    convolve<float>(PUONE_FLOAT32, {.positions = 3, .source = 7, .step = 2, .offset = 0});
    convolve<float>(PUONE_FLOAT32, {.positions = 4, .source = 6, .offset = -2, .tap_step = 3});
    convolve<float>(PUONE_FLOAT32, {.groups = 1});
    CHECK_EQ(fake.convolutions(), size_t{5});
    convolve<int32_t>(PUONE_INT32, kPlain);
    CHECK_EQ(fake.convolutions(), size_t{5});
  });
}

TEST(a_bias_goes_with_the_convolution) {
  withLibrary(PUONE_FAKE_CUDNN, [] {
    const Fake fake;
    convolve<float>(PUONE_FLOAT32, {.bias = true});
    convolve<double>(PUONE_FLOAT64, {.bias = true});
    CHECK_EQ(fake.convolutions(), size_t{2});
    CHECK_EQ(fake.biases(), size_t{2});
  });
}

TEST(the_library_gets_both_gradients) {
  withLibrary(PUONE_FAKE_CUDNN, [] {
    const Fake fake;
    convolve<float>(PUONE_FLOAT32, kBackwards);
    convolve<double>(
        PUONE_FLOAT64,
        {.positions = 7,
         .source = 3,
         .offset = 0,
         .tap_step = -2,
         .groups = 1,
         .weight_is_turned = true});
    gradientOfWeight<float>(PUONE_FLOAT32, kPlain);
    gradientOfWeight<double>(PUONE_FLOAT64, {.positions = 3, .source = 7, .step = 2, .offset = 0});
    CHECK_EQ(fake.convolutions(), size_t{4});
  });
}

TEST(what_no_library_knows_is_done_without_it) {
  withLibrary(PUONE_FAKE_CUDNN, [] {
    const Fake fake;
    convolve<float>(PUONE_FLOAT32, {.positions = 4});              // not all positions
    convolve<float>(PUONE_FLOAT32, {.offset = 1});                 // less than all of the source
    convolve<float>(PUONE_FLOAT32, {.offset = 1, .tap_step = -1}); // the weight is another
    convolve<float>(PUONE_FLOAT32, {.weight_is_turned = true});
    Case with_bias = kBackwards;
    with_bias.bias = true;
    convolve<float>(PUONE_FLOAT32, with_bias);
    convolve<float>(PUONE_FLOAT32, {.channels = 1});                       // depthwise
    convolve<float>(PUONE_FLOAT32, {.taps = 1, .offset = 0, .groups = 1}); // a matrix product
    gradientOfWeight<float>(PUONE_FLOAT32, {.positions = 4});
    gradientOfWeight<float>(PUONE_FLOAT32, {.rows = 1, .channels = 1});
    CHECK_EQ(fake.convolutions(), size_t{0});
  });
}

TEST(refused_convolutions_are_done_without_it) {
  for (const int status : {3, 6, 9, 2000, 3000, 3002}) { // of versions 8 and 9
    withLibrary(PUONE_FAKE_CUDNN, [status] {
      const Fake fake;
      fake.refuse(status);
      for (int i = 0; i < 2; ++i) convolve<float>(PUONE_FLOAT32, {.bias = true});
      convolve<float>(PUONE_FLOAT32, kBackwards);
      gradientOfWeight<float>(PUONE_FLOAT32, kPlain);
      CHECK_EQ(fake.convolutions(), size_t{0});
      CHECK_EQ(fake.plans(), size_t{3});
    });
  }
}

TEST(a_failure_of_the_library_is_an_error) {
  withLibrary(PUONE_FAKE_CUDNN, [] {
    const Fake fake;
    fake.refuse(4000);
    CHECK_EQ(static_cast<int>(launchOne()), static_cast<int>(PUONE_INTERNAL));
    CHECK(errorSays("cuDNN status 4000"));
  });
}

TEST(convolutions_of_a_shape_are_planned_once) {
  withLibrary(PUONE_FAKE_CUDNN, [] {
    const Fake fake;
    for (int i = 0; i < 5; ++i) convolve<float>(PUONE_FLOAT32, kPlain);
    CHECK_EQ(fake.plans(), size_t{1});
    convolve<float>(PUONE_FLOAT32, {.bias = true});
    gradientOfWeight<float>(PUONE_FLOAT32, kPlain);
    CHECK_EQ(fake.plans(), size_t{3});
    CHECK_EQ(fake.convolutions(), size_t{7});
  });
}

TEST(threads_do_not_share_a_handle_and_one_thread_needs_one) {
  withLibrary(PUONE_FAKE_CUDNN, [] {
    constexpr size_t kThreads = 4;
    const Fake fake;
    for (int i = 0; i < 3; ++i) convolve<float>(PUONE_FLOAT32, kPlain);
    CHECK_EQ(fake.handles(), size_t{1});
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([] {
        for (int i = 0; i < 30; ++i) convolve<double>(PUONE_FLOAT64, {.bias = true});
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(fake.handles() <= kThreads);
    CHECK_EQ(fake.convolutions(), 3 + 30 * kThreads);
  });
}

TEST(none_means_none) {
  withLibrary("none", [] {
    const Fake fake;
    convolve<float>(PUONE_FLOAT32, {.bias = true});
    convolve<float>(PUONE_FLOAT32, kBackwards);
    gradientOfWeight<float>(PUONE_FLOAT32, kPlain);
    CHECK_EQ(fake.convolutions(), size_t{0});
  });
}

TEST(a_library_that_was_asked_for_must_load) {
  withLibrary("/nowhere/libcudnn.so", [] {
    CHECK_EQ(static_cast<int>(launchOne()), static_cast<int>(PUONE_INVALID_ARGUMENT));
    CHECK(errorSays("PUONE_CUDA_DNN"));
    CHECK(errorSays("/nowhere/libcudnn.so"));
  });
}
