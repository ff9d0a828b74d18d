// SPDX-License-Identifier: BSD-3-Clause
// Latencies and bandwidths of the sim driver: medians, in microseconds, against plain memcpy and
// memset on as many threads.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "hal/hal.h"
#include "kernels/args.h"

namespace {

const puone_hal_api* hal = nullptr;

void ok(puone_status status) {
  if (status == PUONE_OK) return;
  std::fprintf(stderr, "%s\n", hal->last_error_message());
  std::exit(1);
}

using Clock = std::chrono::steady_clock;

double microseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

/// Median over `rounds` of the mean time of `repeat` calls.
double measure(
    const std::string& what,
    int rounds,
    int repeat,
    const std::function<void()>& body,
    const std::function<void()>& after = [] {}) {
  std::vector<double> times;
  for (int round = -1; round < rounds; ++round) { // one to warm up
    const auto start = Clock::now();
    for (int i = 0; i < repeat; ++i) body();
    if (round >= 0) times.push_back(microseconds(Clock::now() - start) / repeat);
    after();
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  const double median = times[static_cast<size_t>(rounds / 2)];
  std::printf("%-44s %12.3f us\n", what.c_str(), median);
  return median;
}

void onTwoThreads(size_t bytes, const std::function<void(size_t, size_t)>& body) {
  std::thread other([&] { body(bytes / 2, bytes - bytes / 2); });
  body(0, bytes / 2);
  other.join();
}

} // namespace

int main() {
  if (puone_hal_get(PUONE_HAL_ABI_MAJOR, &hal) != PUONE_OK) return 1;
  ok(hal->init());
  constexpr size_t bytes = size_t{64} << 20;
  puone_stream stream = nullptr;
  void* a = nullptr;
  void* b = nullptr;
  void* pinned = nullptr;
  ok(hal->stream_create(0, 0, &stream));
  ok(hal->malloc(0, bytes, &a));
  ok(hal->malloc(0, bytes, &b));
  ok(hal->host_malloc(4096, &pinned));
  std::vector<char> host_a(bytes, 1);
  std::vector<char> host_b(bytes, 2);
  const auto sync = [&] { ok(hal->stream_synchronize(stream)); };

  std::printf("latency\n");
  measure("stream_synchronize, idle", 101, 1000, sync);
  const double one = measure(
      "device_synchronize, idle, 1 stream", 101, 1000, [] { ok(hal->device_synchronize(0)); });
  std::vector<puone_stream> more(63);
  for (puone_stream& s : more) ok(hal->stream_create(0, 0, &s));
  const double many = measure(
      "device_synchronize, idle, 64 streams", 101, 1000, [] { ok(hal->device_synchronize(0)); });
  std::printf("%-44s %12.2f x\n", "  ratio", many / one);
  for (puone_stream s : more) ok(hal->stream_destroy(s));
  const auto tiny = [&] {
    ok(hal->memcpy_async(pinned, a, 4, PUONE_MEMCPY_DEVICE_TO_HOST, stream));
  };
  measure("4-byte copy to host + synchronize", 101, 100, [&] {
    tiny();
    sync();
  });
  measure(
      "the same, 100 us apart (the copy alone)",
      101,
      1,
      [&] {
        tiny();
        sync();
      },
      [] { std::this_thread::sleep_for(std::chrono::microseconds(100)); });
  measure("submission of a 4-byte copy", 101, 200, tiny, sync);
  puone_kernel fill = nullptr;
  ok(hal->kernel_find("fill", nullptr, &fill));
  puone_fill_args args{};
  args.ndim = 1;
  args.element_size = 4;
  args.sizes[0] = 1;
  args.out = {a, {4}};
  args.value[0] = 7;
  const auto launch = [&] { ok(hal->kernel_launch(fill, &args, sizeof args, stream, nullptr)); };
  measure("submission of a kernel", 101, 200, launch, sync);
  puone_event event = nullptr;
  ok(hal->event_create(0, PUONE_EVENT_TIMING, &event));
  measure("event_record, idle stream", 101, 1000, [&] { ok(hal->event_record(event, stream)); });
  measure("malloc + free of 2 MiB", 101, 10, [] {
    void* block = nullptr;
    ok(hal->malloc(0, 2 << 20, &block));
    ok(hal->free(block));
  });

  std::printf("\nbandwidth, 64 MiB\n");
  const double plain = measure("memcpy, 2 threads", 21, 1, [&] {
    onTwoThreads(bytes, [&](size_t begin, size_t n) {
      std::memcpy(host_b.data() + begin, host_a.data() + begin, n);
    });
  });
  const auto copy = [&](const char* what, void* to, const void* from, puone_memcpy_kind kind) {
    const double time = measure(what, 21, 1, [&] {
      ok(hal->memcpy_async(to, from, bytes, kind, stream));
      sync();
    });
    std::printf("%-44s %12.2f of memcpy's bandwidth\n", "  ratio", plain / time);
  };
  copy("host to device", a, host_a.data(), PUONE_MEMCPY_HOST_TO_DEVICE);
  copy("device to device", b, a, PUONE_MEMCPY_DEVICE_TO_DEVICE);
  copy("device to host", host_b.data(), b, PUONE_MEMCPY_DEVICE_TO_HOST);

  std::printf("\nkernels\n");
  args.sizes[0] = 1 << 20;
  measure("memset, 4 MiB, 2 threads", 101, 1, [&] {
    onTwoThreads(
        4 << 20, [&](size_t begin, size_t n) { std::memset(host_a.data() + begin, 7, n); });
  });
  measure("fill of 1M float32 + synchronize", 101, 1, [&] {
    launch();
    sync();
  });
  puone_kernel cast = nullptr;
  ok(hal->kernel_find("copy", nullptr, &cast));
  const auto measureCopy = [&](const char* what,
                               puone_dtype out,
                               puone_dtype in,
                               int64_t out_size,
                               int64_t in_size,
                               bool transposed) {
    puone_copy_args copy_args{};
    copy_args.ndim = 2;
    copy_args.out_dtype = out;
    copy_args.in_dtype = in;
    copy_args.sizes[0] = copy_args.sizes[1] = 1024;
    copy_args.out = {b, {out_size, 1024 * out_size}};
    copy_args.in = {a, {in_size, 1024 * in_size}};
    if (transposed) std::swap(copy_args.in.strides[0], copy_args.in.strides[1]);
    measure(what, 51, 1, [&] {
      ok(hal->kernel_launch(cast, &copy_args, sizeof copy_args, stream, nullptr));
      sync();
    });
  };
  measureCopy("copy 1M float32", PUONE_FLOAT32, PUONE_FLOAT32, 4, 4, false);
  measureCopy("copy 1M float32, transposed", PUONE_FLOAT32, PUONE_FLOAT32, 4, 4, true);
  measureCopy("copy 1M float32 to float16", PUONE_FLOAT16, PUONE_FLOAT32, 2, 4, false);
  measureCopy("copy 1M float16 to float32", PUONE_FLOAT32, PUONE_FLOAT16, 4, 2, false);
  measureCopy("copy 1M float32 to bfloat16", PUONE_BFLOAT16, PUONE_FLOAT32, 2, 4, false);
  measureCopy("copy 1M int64 to float32", PUONE_FLOAT32, PUONE_INT64, 4, 8, false);
  measureCopy("copy 1M float32 to int64", PUONE_INT64, PUONE_FLOAT32, 8, 4, false);
  measureCopy("copy 1M float32 to uint8", PUONE_UINT8, PUONE_FLOAT32, 1, 4, false);
  measureCopy("copy 1M float64 to float32", PUONE_FLOAT32, PUONE_FLOAT64, 4, 8, false);
  ok(hal->shutdown());
  return 0;
}
