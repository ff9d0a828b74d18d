// SPDX-License-Identifier: BSD-3-Clause
// allocator_bench ROUNDS: what an allocation and its free cost, for bench/allocator.py. Each round
// is a line "single threaded shared" of nanoseconds of processor time, and the same of elapsed
// time: one thread on one stream; four threads on two streams each; four threads on all eight
// streams.
#include <time.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "runtime/device_allocator.h"
#include "runtime/stream.h"

namespace {

using puone::Stream;

constexpr int kAllocations = 1'000'000;
constexpr int kThreads = 4;
constexpr size_t kStreams = 8;
constexpr size_t kLive = 16; // blocks of a thread

double seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Allocates for each of the streams in turn; a block lives for the next `kLive` allocations.
void allocate(const std::vector<Stream>& streams, int count) {
  std::array<c10::DataPtr, kLive> live;
  uint32_t random = 1;
  for (int i = 0; i < count; ++i) {
    random = random * 1664525 + 1013904223;
    puone::setCurrentStream(streams[static_cast<size_t>(i) % streams.size()]);
    live[static_cast<size_t>(i) % kLive] = puone::deviceAllocator().allocate(1 + (random >> 16));
  }
}

struct Cost {
  double processor; // ns per allocation
  double elapsed;
};

Cost measure(int threads, const std::vector<std::vector<Stream>>& streams) {
  const double processor = seconds(CLOCK_PROCESS_CPUTIME_ID);
  const double elapsed = seconds(CLOCK_MONOTONIC);
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) {
    const auto& own = streams[static_cast<size_t>(i) % streams.size()];
    workers.emplace_back([&own, threads] { allocate(own, kAllocations / threads); });
  }
  for (auto& worker : workers) worker.join();
  const double each = 1e9 / kAllocations;
  return {
      (seconds(CLOCK_PROCESS_CPUTIME_ID) - processor) * each,
      (seconds(CLOCK_MONOTONIC) - elapsed) * each};
}

} // namespace

int main(int argc, char** argv) {
  setenv("PUONE_DRIVER", "sim", 1);
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
  std::vector<Stream> all;
  for (size_t i = 0; i < kStreams; ++i) all.push_back(puone::getStreamFromPool(0, 0));
  std::vector<std::vector<Stream>> own(kThreads);
  for (size_t i = 0; i < kStreams; ++i) own[i % kThreads].push_back(all[i]);
  allocate(all, 10'000);
  for (int round = 0; round < rounds; ++round) {
    const Cost single = measure(1, {{all[0]}});
    const Cost threaded = measure(kThreads, own);
    const Cost shared = measure(kThreads, {all});
    std::printf(
        "%.1f %.1f %.1f %.1f %.1f %.1f\n",
        single.processor,
        threaded.processor,
        shared.processor,
        single.elapsed,
        threaded.elapsed,
        shared.elapsed);
    std::fflush(stdout);
  }
}
