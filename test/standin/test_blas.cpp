// SPDX-License-Identifier: BSD-3-Clause
// Matrix products of the cuda driver, over the stand-ins for CUDA's runtime, for cuBLAS and for
// cuBLASLt: the libraries get those that they can do and no others, and the results are right
// either way.
#include <algorithm>
#include <complex>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "driver.h"
#include "fake_cublas.h"
#include "fake_library.h"
#include "hal/hal.h"
#include "kernels/args/matmul.h"
#include "workspace.h"

using namespace puone::test;

namespace {

struct Fake : FakeLibrary {
  Fake() : FakeLibrary(PUONE_FAKE_CUBLAS) {}
  size_t products() const {
    return function<decltype(&fakeCublasProducts)>("fakeCublasProducts")();
  }
  size_t handles() const {
    return function<decltype(&fakeCublasHandles)>("fakeCublasHandles")();
  }
  void refuse() const {
    function<decltype(&fakeCublasRefuse)>("fakeCublasRefuse")();
  }
  size_t fusedProducts() const {
    return function<decltype(&fakeCublasLtProducts)>("fakeCublasLtProducts")();
  }
  size_t plans() const {
    return function<decltype(&fakeCublasLtPlans)>("fakeCublasLtPlans")();
  }
  void refuseFused() const {
    function<decltype(&fakeCublasLtRefuse)>("fakeCublasLtRefuse")();
  }
};

/// Of `fused`, NULL is no choice.
template <class Body>
void withLibraries(const char* choice, const char* fused, const Body& body) {
  std::vector<std::pair<const char*, const char*>> variables{
      {"PUONE_CUDA_BLAS", choice}, {"PUONE_STANDIN_LIBRARY", PUONE_FAKE_CUBLAS}};
  if (fused != nullptr) variables.emplace_back("PUONE_CUDA_BLASLT", fused);
  withVariables(variables, body);
}

template <class Body>
void withLibrary(const char* choice, const Body& body) {
  withLibraries(choice, nullptr, body);
}

constexpr int64_t kMostBatch = 2;

enum class Layout {
  kRows,    // rows are dense
  kColumns, // columns are
  kSparse   // neither
};

/// Batches of matrices on the device, and what is in them.
template <class T>
class Matrices {
 public:
  Matrices(int64_t rows, int64_t columns, Layout layout, int seed)
      : rows_(rows), columns_(columns), values_(kMostBatch * rows * columns * 2) {
    for (size_t i = 0; i < values_.size(); ++i) values_[i] = number((i * 7 + seed * 5) % 11);
    const int64_t step = layout == Layout::kSparse ? 2 : 1;
    row_ = layout == Layout::kColumns ? 1 : columns * step;
    column_ = layout == Layout::kColumns ? rows : step;
    OK(hal().malloc(0, bytes(), &data_));
    copy(data_, values_.data(), bytes(), PUONE_MEMCPY_HOST_TO_DEVICE);
  }
  ~Matrices() {
    OK(hal().free(data_));
  }
  Matrices(const Matrices&) = delete;
  Matrices& operator=(const Matrices&) = delete;

  T at(int64_t batch, int64_t row, int64_t column) const {
    return values_[batch * rows_ * columns_ + row * row_ + column * column_];
  }
  puone_matrix matrix(bool conj = false) const {
    constexpr auto kSize = static_cast<int64_t>(sizeof(T));
    return {data_, row_ * kSize, column_ * kSize, rows_ * columns_ * kSize, conj ? 1 : 0};
  }
  void fetch() {
    copy(values_.data(), data_, bytes(), PUONE_MEMCPY_DEVICE_TO_HOST);
  }

 private:
  static T number(size_t i) {
    const auto value = static_cast<double>(i) - 5;
    if constexpr (std::is_arithmetic_v<T>) {
      return static_cast<T>(value);
    } else {
      return {static_cast<typename T::value_type>(value), 1};
    }
  }
  size_t bytes() const {
    return values_.size() * sizeof(T);
  }

  int64_t rows_, columns_, row_ = 0, column_ = 0;
  std::vector<T> values_;
  void* data_ = nullptr;
};

template <class T>
T conjugate(T value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return value;
  } else {
    return std::conj(value);
  }
}

enum class Self {
  kMatrix,
  kOfColumns, // a number for each column
  kOfRows
};

struct Case {
  Layout out = Layout::kRows, a = Layout::kRows, b = Layout::kRows;
  bool a_conj = false;
  double beta = 0;
  int64_t batch = kMostBatch;
  Self self = Self::kMatrix;
  bool relu = false;
  int64_t first = 0; // element of `self`, which is less aligned if it is not 0
};

/// A bias of each column or row of a single matrix, whose rows or columns are dense.
constexpr Case kColumnBias{.out = Layout::kRows, .beta = 1, .batch = 1, .self = Self::kOfColumns};
constexpr Case kRowBias{.out = Layout::kColumns, .beta = 1, .batch = 1, .self = Self::kOfRows};

template <class T>
T rectified(T value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return std::max(value, T(0));
  } else {
    return value;
  }
}

/// Runs the product and checks every element; all numbers are whole and small, so sums are exact.
template <class T>
void multiply(puone_dtype dtype, const Case& test) {
  constexpr int64_t kM = 5, kN = 7, kK = 3;
  Matrices<T> out(kM, kN, test.out, 1);
  const Matrices<T> self(kM, kN, Layout::kRows, 2);
  const Matrices<T> a(kM, kK, test.a, 3), b(kK, kN, test.b, 4);
  puone_gemm_args args{};
  args.dtype = dtype;
  args.batch = test.batch;
  args.m = kM;
  args.n = kN;
  args.k = kK;
  args.alpha = {2, 0, 2};
  args.beta = {test.beta, 0, static_cast<int64_t>(test.beta)};
  args.out = out.matrix();
  args.self = self.matrix();
  args.self.data = static_cast<T*>(args.self.data) + test.first;
  if (test.self != Self::kMatrix) args.self.row_stride = args.self.batch_stride = 0;
  if (test.self == Self::kOfRows) std::swap(args.self.row_stride, args.self.column_stride);
  args.activation = test.relu ? PUONE_ACTIVATION_RELU : PUONE_ACTIVATION_NONE;
  args.a = a.matrix(test.a_conj);
  args.b = b.matrix();
  puone_kernel kernel = nullptr;
  puone_stream stream = nullptr;
  OK(hal().kernel_find("gemm", nullptr, &kernel));
  OK(hal().stream_create(0, 0, &stream));
  const Workspace workspace(hal());
  OK(hal().kernel_launch(kernel, &args, sizeof args, stream, workspace.context()));
  OK(hal().stream_synchronize(stream));
  OK(hal().stream_destroy(stream));
  out.fetch();
  for (int64_t batch = 0; batch < test.batch; ++batch) {
    for (int64_t i = 0; i < kM; ++i) {
      for (int64_t j = 0; j < kN; ++j) {
        T sum{};
        for (int64_t p = 0; p < kK; ++p) {
          const T left = a.at(batch, i, p);
          sum += (test.a_conj ? conjugate(left) : left) * b.at(batch, p, j);
        }
        const T addend = test.self == Self::kMatrix      ? self.at(batch, i, j)
                         : test.self == Self::kOfColumns ? self.at(0, 0, test.first + j)
                                                         : self.at(0, 0, test.first + i);
        const T expected = T(2) * sum + T(test.beta) * addend;
        CHECK(out.at(batch, i, j) == (test.relu ? rectified(expected) : expected));
      }
    }
  }
}

} // namespace

TEST(the_library_gets_every_type_that_it_knows) {
  withLibrary(PUONE_FAKE_CUBLAS, [] {
    const Fake fake;
    multiply<float>(PUONE_FLOAT32, {});
    multiply<double>(PUONE_FLOAT64, {});
    multiply<std::complex<float>>(PUONE_COMPLEX64, {});
    multiply<std::complex<double>>(PUONE_COMPLEX128, {});
    CHECK_EQ(fake.products(), size_t{4});
    multiply<int32_t>(PUONE_INT32, {});
    multiply<int64_t>(PUONE_INT64, {});
    CHECK_EQ(fake.products(), size_t{4});
  });
}

TEST(every_layout_gives_the_same_and_the_library_gets_the_dense_ones) {
  withLibrary(PUONE_FAKE_CUBLAS, [] {
    const Fake fake;
    size_t expected = 0;
    for (const Layout out : {Layout::kRows, Layout::kColumns, Layout::kSparse}) {
      for (const Layout a : {Layout::kRows, Layout::kColumns, Layout::kSparse}) {
        for (const Layout b : {Layout::kRows, Layout::kColumns, Layout::kSparse}) {
          multiply<float>(PUONE_FLOAT32, {out, a, b, false, 0, kMostBatch});
          const bool dense = out != Layout::kSparse && a != Layout::kSparse && b != Layout::kSparse;
          expected += dense ? 1 : 0;
          CHECK_EQ(fake.products(), expected);
        }
      }
    }
  });
}

TEST(one_product_is_not_a_batch) {
  withLibrary(PUONE_FAKE_CUBLAS, [] {
    const Fake fake;
    multiply<float>(PUONE_FLOAT32, {Layout::kRows, Layout::kColumns, Layout::kRows, false, 3, 1});
    multiply<double>(PUONE_FLOAT64, {Layout::kColumns, Layout::kRows, Layout::kRows, false, 0, 1});
    CHECK_EQ(fake.products(), size_t{2});
  });
}

TEST(conjugated_factors_are_conjugated) {
  withLibrary(PUONE_FAKE_CUBLAS, [] {
    const Fake fake;
    for (const Layout out : {Layout::kRows, Layout::kColumns}) {
      for (const Layout a : {Layout::kRows, Layout::kColumns}) {
        multiply<std::complex<double>>(
            PUONE_COMPLEX128, {out, a, Layout::kRows, true, 0, kMostBatch});
      }
    }
    CHECK_EQ(fake.products(), size_t{2}); // where it is to be transposed as well
  });
}

TEST(what_is_added_to_is_left_alone) {
  withLibrary(PUONE_FAKE_CUBLAS, [] {
    const Fake fake;
    for (const Layout out : {Layout::kRows, Layout::kColumns}) {
      multiply<float>(PUONE_FLOAT32, {out, Layout::kRows, Layout::kColumns, false, 3, kMostBatch});
    }
    CHECK_EQ(fake.products(), size_t{2});
  });
}

TEST(what_the_library_refuses_is_done_without_it) {
  withLibrary(PUONE_FAKE_CUBLAS, [] {
    const Fake fake;
    fake.refuse();
    multiply<float>(PUONE_FLOAT32, {});
    multiply<float>(
        PUONE_FLOAT32, {Layout::kColumns, Layout::kRows, Layout::kColumns, false, 3, kMostBatch});
    CHECK_EQ(fake.products(), size_t{0});
  });
}

TEST(threads_do_not_share_a_handle_and_one_thread_needs_one) {
  withLibrary(PUONE_FAKE_CUBLAS, [] {
    constexpr size_t kThreads = 4;
    const Fake fake;
    for (int i = 0; i < 5; ++i) multiply<float>(PUONE_FLOAT32, {});
    CHECK_EQ(fake.handles(), size_t{1});
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([] {
        for (int i = 0; i < 50; ++i) multiply<double>(PUONE_FLOAT64, {});
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(fake.handles() <= kThreads);
    CHECK_EQ(fake.products(), 5 + 50 * kThreads);
  });
}

TEST(a_bias_goes_with_the_product) {
  withLibrary(PUONE_FAKE_CUBLAS, [] {
    const Fake fake;
    multiply<float>(PUONE_FLOAT32, kColumnBias);
    multiply<double>(PUONE_FLOAT64, kRowBias);
    for (const Layout a : {Layout::kRows, Layout::kColumns}) {
      Case test = kColumnBias;
      test.a = a;
      test.b = Layout::kColumns;
      multiply<float>(PUONE_FLOAT32, test);
    }
    CHECK_EQ(fake.fusedProducts(), size_t{4});
    CHECK_EQ(fake.products(), size_t{0});
  });
}

TEST(a_rectifier_goes_with_the_product) {
  withLibrary(PUONE_FAKE_CUBLAS, [] {
    const Fake fake;
    multiply<float>(PUONE_FLOAT32, {.relu = true});
    multiply<double>(PUONE_FLOAT64, {.batch = 1, .relu = true});
    multiply<float>(PUONE_FLOAT32, {.beta = 3, .relu = true});
    for (Case test : {kColumnBias, kRowBias}) {
      test.relu = true;
      multiply<float>(PUONE_FLOAT32, test);
    }
    CHECK_EQ(fake.fusedProducts(), size_t{5});
    CHECK_EQ(fake.products(), size_t{0});
  });
}

TEST(what_is_no_bias_is_added_as_a_matrix) {
  withLibrary(PUONE_FAKE_CUBLAS, [] {
    const Fake fake;
    multiply<float>(PUONE_FLOAT32, {.beta = 1, .batch = 1});
    multiply<float>(PUONE_FLOAT32, {.beta = 3, .batch = 1, .self = Self::kOfColumns});
    multiply<float>(PUONE_FLOAT32, {.beta = 1, .self = Self::kOfColumns});
    multiply<float>(PUONE_FLOAT32, {.beta = 1, .batch = 1, .self = Self::kOfRows});
    multiply<std::complex<float>>(PUONE_COMPLEX64, kColumnBias);
    CHECK_EQ(fake.products(), size_t{5});
    multiply<int32_t>(PUONE_INT32, kColumnBias);
    CHECK_EQ(fake.products(), size_t{5});
    CHECK_EQ(fake.fusedProducts(), size_t{0});
  });
}

TEST(products_of_a_shape_and_an_alignment_are_planned_once) {
  withLibrary(PUONE_FAKE_CUBLAS, [] {
    const Fake fake;
    for (int i = 0; i < 5; ++i) multiply<float>(PUONE_FLOAT32, kColumnBias);
    CHECK_EQ(fake.plans(), size_t{1});
    Case test = kColumnBias;
    test.relu = true;
    multiply<float>(PUONE_FLOAT32, test);
    CHECK_EQ(fake.plans(), size_t{2});
    test.first = 4; // aligned to 16 bytes
    for (int i = 0; i < 3; ++i) multiply<float>(PUONE_FLOAT32, test);
    CHECK_EQ(fake.plans(), size_t{3});
    CHECK_EQ(fake.fusedProducts(), size_t{9});
  });
}

TEST(what_the_fused_library_refuses_is_done_without_it) {
  withLibrary(PUONE_FAKE_CUBLAS, [] {
    const Fake fake;
    Case test = kColumnBias;
    test.first = 1; // less aligned than it wants
    for (int i = 0; i < 3; ++i) multiply<float>(PUONE_FLOAT32, test);
    CHECK_EQ(fake.plans(), size_t{1});
    CHECK_EQ(fake.products(), size_t{3});
    fake.refuseFused();
    multiply<float>(PUONE_FLOAT32, kColumnBias);
    CHECK_EQ(fake.products(), size_t{4});
    multiply<float>(PUONE_FLOAT32, {.beta = 3, .relu = true}); // which then is a pass of its own
    CHECK_EQ(fake.products(), size_t{5});
    CHECK_EQ(fake.fusedProducts(), size_t{0});
  });
}

TEST(threads_do_not_share_a_plan) {
  withLibrary(PUONE_FAKE_CUBLAS, [] {
    constexpr size_t kThreads = 4;
    const Fake fake;
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([] {
        for (int i = 0; i < 50; ++i) multiply<float>(PUONE_FLOAT32, kColumnBias);
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(fake.plans() <= kThreads);
    CHECK_EQ(fake.fusedProducts(), 50 * kThreads);
  });
}

TEST(no_fused_library_leaves_the_bias_to_the_other_one) {
  withLibraries(PUONE_FAKE_CUBLAS, "none", [] {
    const Fake fake;
    multiply<float>(PUONE_FLOAT32, kColumnBias);
    multiply<float>(PUONE_FLOAT32, {.relu = true});
    CHECK_EQ(fake.products(), size_t{2});
    CHECK_EQ(fake.fusedProducts(), size_t{0});
  });
}

TEST(none_means_none) {
  withLibraries("none", PUONE_FAKE_CUBLAS, [] {
    const Fake fake;
    multiply<float>(PUONE_FLOAT32, {});
    multiply<float>(PUONE_FLOAT32, kColumnBias);
    CHECK_EQ(fake.fusedProducts(), size_t{0});
    multiply<std::complex<float>>(
        PUONE_COMPLEX64, {Layout::kRows, Layout::kColumns, Layout::kRows, true, 3, kMostBatch});
    CHECK_EQ(fake.products(), size_t{0});
  });
}

namespace {

/// A product with a bias and a rectifier, which looks for both libraries.
puone_status multiplyOnes() {
  puone_kernel kernel = nullptr;
  puone_stream stream = nullptr;
  OK(hal().kernel_find("gemm", nullptr, &kernel));
  OK(hal().stream_create(0, 0, &stream));
  const Matrices<float> a(2, 2, Layout::kRows, 1), out(2, 2, Layout::kRows, 2);
  puone_gemm_args args{};
  args.dtype = PUONE_FLOAT32;
  args.batch = 1;
  args.m = args.n = args.k = 2;
  args.activation = PUONE_ACTIVATION_RELU;
  args.alpha = {1, 0, 1};
  args.out = out.matrix();
  args.a = args.b = a.matrix();
  const Workspace workspace(hal());
  return hal().kernel_launch(kernel, &args, sizeof args, stream, workspace.context());
}

} // namespace

TEST(a_library_that_was_asked_for_must_load) {
  const auto fails = [](const char* variable, const char* path) {
    CHECK_EQ(static_cast<int>(multiplyOnes()), static_cast<int>(PUONE_INVALID_ARGUMENT));
    CHECK(errorSays(variable));
    CHECK(errorSays(path));
  };
  withLibrary("/nowhere/libcublas.so", [&] { fails("PUONE_CUDA_BLAS", "/nowhere/libcublas.so"); });
  withLibraries(PUONE_FAKE_CUBLAS, "/nowhere/libcublasLt.so", [&] {
    fails("PUONE_CUDA_BLASLT", "/nowhere/libcublasLt.so");
  });
}

namespace {

/// The dot product of n ones with themselves: a kernel that needs workspace.
puone_status dotOfOnes(
    puone_stream on, void* ones, void* out, const puone_launch_context* context) {
  puone_dot_args args{};
  args.dtype = PUONE_FLOAT32;
  args.n = 1 << 12;
  args.out = out;
  args.a = args.b = ones;
  args.a_stride = args.b_stride = 0;
  puone_kernel kernel = nullptr;
  OK(hal().kernel_find("dot", nullptr, &kernel));
  return hal().kernel_launch(kernel, &args, sizeof args, on, context);
}

} // namespace

TEST(a_kernel_takes_its_workspace_from_the_launch_context) {
  withLibrary("none", [] {
    const float one = 1;
    float result = 0;
    void* ones = nullptr;
    void* out = nullptr;
    puone_stream stream = nullptr;
    OK(hal().malloc(0, sizeof one, &ones));
    OK(hal().malloc(0, sizeof one, &out));
    OK(hal().stream_create(0, 0, &stream));
    copy(ones, &one, sizeof one, PUONE_MEMCPY_HOST_TO_DEVICE);

    // Without a context, and with one that has nothing to give, the launch fails cleanly.
    CHECK_EQ(
        static_cast<int>(dotOfOnes(stream, ones, out, nullptr)),
        static_cast<int>(PUONE_OUT_OF_MEMORY));
    CHECK(errorSays("kernel_launch: kernel dot: ") && errorSays("no context"));
    for (const puone_status answer : {PUONE_OUT_OF_MEMORY, PUONE_DEVICE_LOST}) {
      Workspace workspace(hal());
      workspace.answer = answer;
      const puone_status status = dotOfOnes(stream, ones, out, workspace.context());
      CHECK_EQ(static_cast<int>(status), static_cast<int>(answer));
      CHECK(errorSays("kernel_launch: kernel dot: ") && errorSays("of workspace"));
      OK(hal().stream_synchronize(stream));
    }

    const Workspace workspace(hal());
    OK(dotOfOnes(stream, ones, out, workspace.context()));
    CHECK(workspace.blocks() > 0);
    OK(hal().stream_synchronize(stream));
    copy(&result, out, sizeof result, PUONE_MEMCPY_DEVICE_TO_HOST);
    CHECK_EQ(result, 4096.0f);
  });
}
