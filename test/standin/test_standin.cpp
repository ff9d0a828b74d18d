// SPDX-License-Identifier: BSD-3-Clause
// The stand-in keeps CUDA's promises, and no more than these.
#include "standin.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "check.h"

using namespace puone::test;
using namespace std::chrono_literals;

namespace {

/// The stand-in as in a new process with these variables; nothing may be left at the end.
class Fresh {
 public:
  using Variables = std::initializer_list<std::pair<std::string, std::string>>;

  Fresh() : Fresh(Variables{}) {}
  explicit Fresh(Variables variables) : variables_(variables) {
    for (const auto& [name, value] : variables_) {
      setenv(("PUONE_STANDIN_" + name).c_str(), value.c_str(), 1);
    }
    standinReset();
  }
  ~Fresh() {
    for (const auto& [name, value] : variables_) unsetenv(("PUONE_STANDIN_" + name).c_str());
    standinReset();
  }
  Fresh(const Fresh&) = delete;
  Fresh& operator=(const Fresh&) = delete;

 private:
  const std::vector<std::pair<std::string, std::string>> variables_;
};

#define IS(call, expected) CHECK_EQ(static_cast<int>(call), static_cast<int>(expected))
#define OK(call) IS(call, cudaSuccess)

cudaStream_t stream(int device = 0) {
  cudaStream_t made = nullptr;
  OK(cudaSetDevice(device));
  OK(cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking, 0));
  OK(cudaSetDevice(0));
  return made;
}

cudaEvent_t event(unsigned flags = cudaEventDisableTiming, int device = 0) {
  cudaEvent_t made = nullptr;
  OK(cudaSetDevice(device));
  OK(cudaEventCreateWithFlags(&made, flags));
  OK(cudaSetDevice(0));
  return made;
}

char* block(size_t bytes, int device = 0) {
  void* made = nullptr;
  OK(cudaSetDevice(device));
  OK(cudaMalloc(&made, bytes));
  OK(cudaSetDevice(0));
  return static_cast<char*>(made);
}

char* pinned(size_t bytes) {
  void* made = nullptr;
  OK(cudaHostAlloc(&made, bytes, cudaHostAllocPortable));
  return static_cast<char*>(made);
}

char valueAt(const char* device, cudaStream_t on) {
  char value = 0;
  OK(cudaMemcpyAsync(&value, device, 1, cudaMemcpyDeviceToHost, on));
  return value;
}

/// Holds a stream by a host function, which has begun, until opened.
class Gate {
 public:
  explicit Gate(cudaStream_t on) {
    OK(cudaLaunchHostFunc(
        on,
        [](void* data) {
          auto* gate = static_cast<Gate*>(data);
          std::unique_lock lock(gate->mutex_);
          gate->reached_ = true;
          gate->changed_.notify_all();
          gate->changed_.wait(lock, [=] { return gate->open_; });
          gate->passed_ = true;
          gate->changed_.notify_all();
        },
        this));
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return reached_; });
  }
  ~Gate() {
    open();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return passed_; });
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  void open() {
    const std::lock_guard guard(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool reached_ = false;
  bool open_ = false;
  bool passed_ = false;
};

/// How a forked child ends that runs `body`: a status of waitpid().
template <class Body>
int inChild(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    if (freopen("/dev/null", "w", stderr) == nullptr) _exit(99);
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

template <class Body>
bool dies(const Body& body) {
  const int status = inChild(body);
  return WIFSIGNALED(status) || WEXITSTATUS(status) != 0; // a sanitizer's report
}

} // namespace

// ---- order ----

TEST(work_is_queued_and_runs_later) {
  const Fresh fresh;
  const cudaStream_t on = stream();
  char* device = block(1);
  char* host = pinned(1);
  *host = 1;
  {
    Gate gate(on);
    OK(cudaMemcpyAsync(device, host, 1, cudaMemcpyHostToDevice, on));
    *host = 2; // the copy has not run: it will see this
    IS(cudaStreamQuery(on), cudaErrorNotReady);
  }
  CHECK_EQ(valueAt(device, on), 2);
  OK(cudaStreamQuery(on));
}

TEST(pageable_memory_is_done_with_when_the_call_returns) {
  const Fresh fresh;
  const cudaStream_t on = stream();
  char* device = block(1);
  char host = 3;
  {
    Gate gate(on);
    OK(cudaMemcpyAsync(device, &host, 1, cudaMemcpyHostToDevice, on));
    host = 4;
  }
  CHECK_EQ(valueAt(device, on), 3);
}

TEST(a_stream_runs_its_work_in_order) {
  const Fresh fresh({{"SEED", "1"}});
  const cudaStream_t on = stream();
  char* device = block(1);
  std::vector<int> order;
  for (int i = 0; i < 200; ++i) {
    OK(cudaMemsetAsync(device, i, 1, on));
    standinEnqueue(on, [=, &order] { order.push_back(*device & 0xFF); });
  }
  OK(cudaStreamSynchronize(on));
  for (int i = 0; i < 200; ++i) CHECK_EQ(order.at(static_cast<size_t>(i)), i);
}

TEST(streams_run_beside_each_other) {
  const Fresh fresh;
  const cudaStream_t held = stream();
  const cudaStream_t free = stream();
  Gate gate(held);
  OK(cudaMemsetAsync(block(8), 1, 8, free));
  OK(cudaStreamSynchronize(free));
  IS(cudaStreamQuery(held), cudaErrorNotReady);
}

TEST(a_device_waits_for_all_of_its_streams_and_for_no_others) {
  const Fresh fresh;
  const cudaStream_t here = stream(0);
  const cudaStream_t there = stream(1);
  Gate elsewhere(there);
  std::atomic<bool> ran{false};
  Gate gate(here);
  OK(cudaLaunchHostFunc(
      here, [](void* data) { static_cast<std::atomic<bool>*>(data)->store(true); }, &ran));
  OK(cudaStreamDestroy(here)); // its work still runs
  std::thread opener([&] {
    std::this_thread::sleep_for(10ms);
    gate.open();
  });
  OK(cudaDeviceSynchronize());
  CHECK(ran.load());
  opener.join();
}

TEST(work_after_a_wait_comes_after_the_record_as_it_was_then) {
  const Fresh fresh({{"SEED", "2"}});
  const cudaStream_t first = stream(0);
  const cudaStream_t second = stream(1);
  const cudaStream_t third = stream(0);
  const cudaEvent_t done = event();
  char* from = block(1, 0);
  char* to = block(1, 1);
  for (int round = 0; round < 20; ++round) {
    Gate later(third);
    {
      Gate gate(first);
      OK(cudaMemsetAsync(from, round, 1, first));
      OK(cudaEventRecord(done, first));
      OK(cudaStreamWaitEvent(second, done, 0));
      OK(cudaEventRecord(done, third)); // the wait is for the record before
      OK(cudaMemcpyAsync(to, from, 1, cudaMemcpyDeviceToDevice, second));
      IS(cudaStreamQuery(second), cudaErrorNotReady);
    }
    CHECK_EQ(valueAt(to, second), round);
  }
}

TEST(events_tell_pending_from_done_and_measure) {
  const Fresh fresh;
  const cudaStream_t on = stream();
  const cudaEvent_t begin = event(cudaEventDefault);
  const cudaEvent_t end = event(cudaEventDefault);
  float ms = 0;
  OK(cudaEventQuery(begin)); // never recorded
  IS(cudaEventElapsedTime(&ms, begin, end), cudaErrorInvalidResourceHandle);
  {
    Gate gate(on);
    OK(cudaEventRecord(begin, on));
    standinEnqueue(on, [] { std::this_thread::sleep_for(20ms); });
    OK(cudaEventRecord(end, on));
    IS(cudaEventQuery(end), cudaErrorNotReady);
    IS(cudaEventElapsedTime(&ms, begin, end), cudaErrorNotReady);
  }
  OK(cudaEventSynchronize(end));
  OK(cudaEventElapsedTime(&ms, begin, end));
  CHECK(ms >= 19 && ms < 2000);
  IS(cudaEventElapsedTime(&ms, begin, event()), cudaErrorInvalidResourceHandle); // not timed
  IS(cudaEventRecord(begin, stream(1)), cudaErrorInvalidResourceHandle); // of another device
}

TEST(a_host_function_may_not_call_cuda) {
  const Fresh fresh;
  const cudaStream_t on = stream();
  cudaError_t answer = cudaSuccess;
  OK(cudaLaunchHostFunc(
      on,
      [](void* data) {
        int count = 0;
        *static_cast<cudaError_t*>(data) = cudaGetDeviceCount(&count);
      },
      &answer));
  OK(cudaStreamSynchronize(on));
  IS(answer, cudaErrorNotPermitted);
}

#ifdef __SANITIZE_THREAD__
TEST(two_streams_that_write_one_place_are_a_race) {
  const Fresh fresh;
  CHECK(dies([] {
    char* device = block(64);
    static std::atomic<int> writes{0}; // relaxed: in lock step, and yet unordered
    for (const cudaStream_t on : {stream(), stream()}) {
      standinEnqueue(on, [=] {
        for (int i = 1; i <= 100; ++i) {
          *device = 1;
          writes.fetch_add(1, std::memory_order_relaxed);
          while (writes.load(std::memory_order_relaxed) < 2 * i) std::this_thread::yield();
        }
      });
    }
    cudaDeviceSynchronize();
  }));
}
#endif

// ---- memory ----

TEST(the_host_cannot_touch_device_memory) {
  const Fresh fresh;
  const cudaStream_t on = stream();
  volatile char* device = block(4096);
  OK(cudaMemsetAsync(block(64), 1, 64, on));
  OK(cudaStreamSynchronize(on)); // device memory is closed again
  CHECK(dies([=] { *device = 1; }));
  CHECK(dies([=] { static_cast<void>(*device); }));
  standinEnqueue(on, [=] { *device = 5; }); // device code may
  CHECK_EQ(valueAt(const_cast<char*>(device), on), 5);
}

#ifdef __SANITIZE_ADDRESS__
TEST(device_code_is_watched_by_the_address_sanitizer) {
  const Fresh fresh;
  const auto deviceWrites = [](ptrdiff_t offset, bool freed) {
    return dies([=] {
      const cudaStream_t on = stream();
      char* device = block(100);
      block(100);
      if (freed) cudaFree(device);
      standinEnqueue(on, [=] { device[offset] = 1; });
      cudaStreamSynchronize(on);
    });
  };
  CHECK(!deviceWrites(99, false));
  CHECK(deviceWrites(100, false));
  CHECK(deviceWrites(99, true));
}
#endif

TEST(a_device_runs_out_of_memory_and_recovers) {
  const Fresh fresh({{"MEMORY", "8"}});
  void* most = nullptr;
  void* more = nullptr;
  size_t free_bytes = 0;
  size_t total = 0;
  OK(cudaMemGetInfo(&free_bytes, &total));
  CHECK_EQ(free_bytes, size_t{8} << 20);
  OK(cudaMalloc(&most, 6 << 20));
  IS(cudaMalloc(&more, 4 << 20), cudaErrorMemoryAllocation);
  CHECK(more == nullptr);
  IS(cudaGetLastError(), cudaErrorMemoryAllocation);
  IS(cudaMalloc(&more, SIZE_MAX), cudaErrorMemoryAllocation);
  OK(cudaFree(most));
  OK(cudaMalloc(&more, 4 << 20));
  IS(cudaFree(static_cast<char*>(more) + 1), cudaErrorInvalidValue);
  OK(cudaFree(more));
  IS(cudaFree(more), cudaErrorInvalidValue);
}

TEST(a_copy_stays_in_its_blocks_and_its_kind) {
  const Fresh fresh;
  const cudaStream_t on = stream();
  char* device = block(64);
  char* other = block(64);
  char* host = pinned(64);
  char plain[128] = {};
  IS(cudaMemcpyAsync(device, plain, 65, cudaMemcpyHostToDevice, on), cudaErrorInvalidValue);
  IS(cudaMemcpyAsync(device + 1, host, 64, cudaMemcpyHostToDevice, on), cudaErrorInvalidValue);
  IS(cudaMemcpyAsync(device, other, 64, cudaMemcpyHostToDevice, on), cudaErrorInvalidValue);
  IS(cudaMemcpyAsync(plain, host, 64, cudaMemcpyDeviceToHost, on), cudaErrorInvalidValue);
  IS(cudaMemcpyAsync(device, device + 32, 33 - 1, cudaMemcpyDeviceToDevice, on), cudaSuccess);
  IS(cudaMemcpyAsync(device, device + 31, 32, cudaMemcpyDeviceToDevice, on), cudaErrorInvalidValue);
  IS(cudaMemsetAsync(plain, 0, 1, on), cudaErrorInvalidValue);
  OK(cudaStreamSynchronize(on));
}

TEST(pointers_say_what_they_are) {
  const Fresh fresh;
  char plain = 0;
  char* device = block(64, 1);
  char* host = pinned(64);
  cudaPointerAttributes found{};
  OK(cudaPointerGetAttributes(&found, device + 63));
  IS(found.type, cudaMemoryTypeDevice);
  CHECK_EQ(found.device, 1);
  OK(cudaPointerGetAttributes(&found, device + 64));
  IS(found.type, cudaMemoryTypeUnregistered);
  OK(cudaPointerGetAttributes(&found, host));
  IS(found.type, cudaMemoryTypeHost);
  OK(cudaPointerGetAttributes(&found, &plain));
  IS(found.type, cudaMemoryTypeUnregistered);
}

TEST(a_pool_gives_memory_of_its_device) {
  const Fresh fresh;
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = 1;
  cudaMemPool_t pool = nullptr;
  OK(cudaMemPoolCreate(&pool, &properties));
  void* made = nullptr;
  const cudaStream_t on = stream(1);
  OK(cudaMallocFromPoolAsync(&made, 64, pool, on));
  cudaPointerAttributes found{};
  OK(cudaPointerGetAttributes(&found, made));
  CHECK_EQ(found.device, 1);
  OK(cudaFreeAsync(made, on));
  OK(cudaStreamSynchronize(on));
  OK(cudaMemPoolDestroy(pool));
  CHECK_EQ(standinLive().pools + standinLive().device_blocks, size_t{0});
}

TEST(memory_lives_from_the_streams_allocation_to_its_free) {
  const Fresh fresh({{"MEMORY", "8"}});
  const cudaStream_t on = stream();
  void* first = nullptr;
  void* second = nullptr;
  {
    Gate gate(on);
    OK(cudaMallocAsync(&first, 6 << 20, on));
    OK(cudaMemsetAsync(first, 7, 6 << 20, on));
    OK(cudaFreeAsync(first, on));
    OK(cudaMallocAsync(&second, 6 << 20, on)); // in the stream's order there is room
    void* third = nullptr;
    IS(cudaMallocAsync(&third, 6 << 20, stream()), cudaErrorMemoryAllocation);
    OK(cudaMemsetAsync(second, 8, 1, on));
    IS(cudaMemsetAsync(first, 9, 1, on), cudaErrorInvalidValue);
  }
  CHECK_EQ(valueAt(static_cast<char*>(second), on), 8);
}

TEST(memory_used_before_its_allocation_ran_is_an_illegal_address) {
  const Fresh fresh;
  const cudaStream_t on = stream();
  const cudaStream_t other = stream();
  void* early = nullptr;
  Gate gate(on);
  OK(cudaMallocAsync(&early, 64, on));
  OK(cudaMemsetAsync(early, 1, 64, other)); // nothing orders it after the allocation
  IS(cudaStreamSynchronize(other), cudaErrorIllegalAddress);
}

TEST(memory_freed_under_queued_work_is_an_illegal_address) {
  const Fresh fresh;
  const cudaStream_t on = stream();
  char* device = block(64);
  {
    Gate gate(on);
    OK(cudaMemsetAsync(device, 1, 64, on));
    OK(cudaFree(device)); // waits for nothing
  }
  IS(cudaStreamSynchronize(on), cudaErrorIllegalAddress);
}

TEST(the_adversary_fills_new_and_freed_memory) {
  const Fresh fresh({{"SEED", "3"}});
  const cudaStream_t on = stream();
  char* device = block(64);
  CHECK_EQ(valueAt(device, on), static_cast<char>(0xA5));
}

// ---- errors ----

TEST(the_last_error_stays_until_it_is_asked_for) {
  const Fresh fresh;
  IS(cudaSetDevice(9), cudaErrorInvalidDevice);
  OK(cudaSetDevice(1));
  IS(cudaPeekAtLastError(), cudaErrorInvalidDevice);
  cudaError_t elsewhere = cudaErrorUnknown;
  std::thread([&] { elsewhere = cudaPeekAtLastError(); }).join();
  IS(elsewhere, cudaSuccess);
  IS(cudaGetLastError(), cudaErrorInvalidDevice);
  OK(cudaGetLastError());
  OK(cudaSetDevice(0));
  OK(cudaDeviceEnablePeerAccess(1, 0));
  IS(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
  IS(cudaGetLastError(), cudaErrorPeerAccessAlreadyEnabled);
}

TEST(a_kernel_that_fails_ruins_its_device_and_no_other) {
  const Fresh fresh({{"FAIL", "kernel:2=700"}});
  const cudaStream_t on = stream();
  const cudaStream_t there = stream(1);
  std::atomic<int> ran{0};
  {
    const Gate gate(on); // none fails before it was asked
    for (int i = 0; i < 3; ++i) standinEnqueue(on, [&] { ++ran; });
    OK(cudaPeekAtLastError()); // the launches were accepted
  }
  IS(cudaStreamSynchronize(on), cudaErrorIllegalAddress);
  CHECK_EQ(ran.load(), 1);
  void* more = nullptr;
  IS(cudaMalloc(&more, 64), cudaErrorIllegalAddress);
  IS(cudaGetLastError(), cudaErrorIllegalAddress);
  IS(cudaGetLastError(), cudaErrorIllegalAddress); // sticky
  OK(cudaStreamSynchronize(there));
  OK(cudaMemsetAsync(block(8, 1), 1, 8, there));
}

TEST(a_launch_can_be_refused) {
  const Fresh fresh({{"FAIL", "launch:1=701"}});
  const cudaStream_t on = stream();
  std::atomic<int> ran{0};
  IS(standinEnqueue(on, [&] { ++ran; }), cudaErrorLaunchOutOfResources);
  IS(cudaGetLastError(), cudaErrorLaunchOutOfResources);
  standinEnqueue(on, [&] { ++ran; });
  OK(cudaStreamSynchronize(on));
  CHECK_EQ(ran.load(), 1);
  standinEnqueue(stream(1), [&] { ++ran; }); // a device that is not current
  IS(cudaGetLastError(), cudaErrorInvalidResourceHandle);
}

TEST(a_function_can_be_made_to_fail) {
  const Fresh fresh({{"FAIL", "cudaMalloc:2=2,cudaStreamQuery:0=999"}});
  void* made = nullptr;
  OK(cudaMalloc(&made, 8));
  IS(cudaMalloc(&made, 8), cudaErrorMemoryAllocation);
  OK(cudaMalloc(&made, 8));
  const cudaStream_t on = stream();
  IS(cudaStreamQuery(on), cudaErrorUnknown);
  IS(cudaStreamQuery(on), cudaErrorUnknown);
}

TEST(a_lost_device_frees_who_waits_for_it) {
  const Fresh fresh;
  const cudaStream_t here = stream(0);
  const cudaStream_t there = stream(1);
  const cudaEvent_t done = event(cudaEventDisableTiming, 1);
  Gate gate(there);
  OK(cudaEventRecord(done, there));
  OK(cudaStreamWaitEvent(here, done, 0));
  std::thread loses([] {
    std::this_thread::sleep_for(10ms);
    standinLoseDevice(0, cudaErrorECCUncorrectable);
  });
  IS(cudaStreamSynchronize(here), cudaErrorECCUncorrectable);
  loses.join();
}

TEST(without_a_driver_or_a_device_everything_says_so) {
  int count = 7;
  {
    const Fresh fresh({{"NO_DRIVER", "1"}});
    IS(cudaGetDeviceCount(&count), cudaErrorInsufficientDriver);
    IS(cudaGetLastError(), cudaErrorInsufficientDriver);
  }
  const Fresh fresh({{"DEVICES", "0"}});
  IS(cudaGetDeviceCount(&count), cudaErrorNoDevice);
  IS(cudaSetDevice(0), cudaErrorNoDevice);
  CHECK_EQ(count, 7);
}

TEST(a_forked_child_can_use_cuda_only_if_its_parent_had_not) {
  const auto count = [] {
    int found = 0;
    _exit(cudaGetDeviceCount(&found) == cudaSuccess ? 10 : 11);
  };
  const Fresh fresh;
  CHECK_EQ(WEXITSTATUS(inChild(count)), 10);
  int found = 0;
  OK(cudaGetDeviceCount(&found));
  CHECK_EQ(WEXITSTATUS(inChild(count)), 11);
}

TEST(what_cuda_leaves_undefined_ends_the_process) {
  const Fresh fresh;
  CHECK(dies([] { // the default stream, which the driver has no use for
    cudaStreamSynchronize(nullptr);
  }));
  CHECK(dies([] { cudaMemsetAsync(block(8), 0, 8, reinterpret_cast<cudaStream_t>(0x10)); }));
}

TEST(dead_handles_are_seen) {
  const Fresh fresh;
  CHECK(dies([] {
    const cudaStream_t gone = stream();
    cudaStreamDestroy(gone);
    cudaStreamQuery(gone);
  }));
  CHECK(dies([] {
    const cudaEvent_t gone = event();
    cudaEventDestroy(gone);
    cudaEventDestroy(gone);
  }));
}

TEST(what_is_left_is_counted) {
  const Fresh fresh;
  const cudaStream_t on = stream();
  const cudaEvent_t done = event();
  void* device = block(8);
  void* host = pinned(8);
  StandinLive live = standinLive();
  CHECK_EQ(live.streams + live.events + live.device_blocks + live.pinned_blocks, size_t{4});
  OK(cudaStreamDestroy(on));
  OK(cudaEventDestroy(done));
  OK(cudaFree(device));
  OK(cudaFreeHost(host));
  live = standinLive();
  CHECK_EQ(live.streams + live.events + live.device_blocks + live.pinned_blocks, size_t{0});
}

// ---- capture ----

TEST(a_captured_graph_replays_work_of_several_streams) {
  for (const char* seed : {"4", "5", "6"}) {
    const Fresh fresh({{"SEED", seed}});
    const cudaStream_t on = stream();
    const cudaStream_t side = stream();
    const cudaEvent_t fork = event();
    const cudaEvent_t join = event();
    char* a = block(8);
    char* b = block(8);
    OK(cudaStreamBeginCapture(on, cudaStreamCaptureModeThreadLocal));
    OK(cudaMemsetAsync(a, 1, 8, on));
    OK(cudaEventRecord(fork, on));
    OK(cudaStreamWaitEvent(side, fork, 0));
    standinEnqueue(side, [=] { *b = static_cast<char>(*a + 10); });
    standinEnqueue(on, [=] { a[1] = static_cast<char>(a[1] + 1); });
    OK(cudaEventRecord(join, side));
    OK(cudaStreamWaitEvent(on, join, 0));
    standinEnqueue(on, [=] { *a = static_cast<char>(*b + a[1]); });
    cudaGraph_t graph = nullptr;
    OK(cudaStreamEndCapture(on, &graph));
    OK(cudaStreamQuery(on)); // nothing ran
    cudaGraphExec_t ready = nullptr;
    OK(cudaGraphInstantiate(&ready, graph, 0));
    OK(cudaGraphDestroy(graph));
    for (int i = 0; i < 3; ++i) {
      OK(cudaGraphLaunch(ready, on));
      CHECK_EQ(valueAt(a, on), 13);
    }
    OK(cudaGraphExecDestroy(ready));
    CHECK_EQ(standinLive().graphs, size_t{0});
  }
}

TEST(memory_of_a_graph_lives_while_the_graph_does) {
  const Fresh fresh;
  const cudaStream_t on = stream();
  char* out = block(1);
  OK(cudaStreamBeginCapture(on, cudaStreamCaptureModeThreadLocal));
  void* scratch = nullptr;
  OK(cudaMallocAsync(&scratch, 64, on));
  OK(cudaMemsetAsync(scratch, 3, 64, on));
  OK(cudaMemcpyAsync(out, scratch, 1, cudaMemcpyDeviceToDevice, on));
  OK(cudaFreeAsync(scratch, on));
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  OK(cudaStreamEndCapture(on, &graph));
  OK(cudaGraphInstantiate(&ready, graph, 0));
  OK(cudaGraphDestroy(graph));
  for (int i = 0; i < 2; ++i) {
    OK(cudaMemsetAsync(out, 0, 1, on));
    OK(cudaGraphLaunch(ready, on));
    CHECK_EQ(valueAt(out, on), 3);
  }
  CHECK_EQ(standinLive().device_blocks, size_t{2});
  OK(cudaGraphExecDestroy(ready));
  CHECK_EQ(standinLive().device_blocks, size_t{1});
}

TEST(a_capture_refuses_what_would_wait_and_is_spoilt_by_it) {
  const Fresh fresh;
  const cudaStream_t on = stream();
  cudaGraph_t graph = nullptr;
  OK(cudaStreamBeginCapture(on, cudaStreamCaptureModeGlobal));
  IS(cudaStreamSynchronize(on), cudaErrorStreamCaptureUnsupported);
  cudaStreamCaptureStatus status{};
  OK(cudaStreamIsCapturing(on, &status));
  IS(status, cudaStreamCaptureStatusInvalidated);
  IS(cudaStreamEndCapture(on, &graph), cudaErrorStreamCaptureInvalidated);
  CHECK(graph == nullptr);
  OK(cudaStreamSynchronize(on));

  void* made = nullptr;
  OK(cudaStreamBeginCapture(on, cudaStreamCaptureModeGlobal));
  std::thread([&] { IS(cudaMalloc(&made, 8), cudaErrorStreamCaptureUnsupported); }).join();
  IS(cudaStreamEndCapture(on, &graph), cudaErrorStreamCaptureInvalidated);

  OK(cudaStreamBeginCapture(on, cudaStreamCaptureModeThreadLocal));
  std::thread([&] { OK(cudaMalloc(&made, 8)); }).join(); // another thread may
  OK(cudaStreamEndCapture(on, &graph));
}

TEST(a_spoilt_capture_gives_its_memory_back) {
  const Fresh fresh;
  const cudaStream_t on = stream();
  void* scratch = nullptr;
  cudaGraph_t graph = nullptr;
  OK(cudaStreamBeginCapture(on, cudaStreamCaptureModeRelaxed));
  OK(cudaMallocAsync(&scratch, 64, on));
  IS(cudaStreamQuery(on), cudaErrorStreamCaptureUnsupported);
  IS(cudaStreamEndCapture(on, &graph), cudaErrorStreamCaptureInvalidated);
  OK(cudaStreamBeginCapture(on, cudaStreamCaptureModeRelaxed));
  OK(cudaMallocAsync(&scratch, 64, on));
  OK(cudaStreamDestroy(on));
  CHECK_EQ(standinLive().device_blocks, size_t{0});
}

TEST(a_capture_must_be_joined_and_alone) {
  const Fresh fresh;
  const cudaStream_t on = stream();
  const cudaStream_t side = stream();
  const cudaEvent_t fork = event();
  const cudaEvent_t outside = event();
  char* device = block(8);
  cudaGraph_t graph = nullptr;
  OK(cudaStreamBeginCapture(on, cudaStreamCaptureModeRelaxed));
  OK(cudaEventRecord(fork, on));
  OK(cudaStreamWaitEvent(side, fork, 0));
  OK(cudaMemsetAsync(device, 0, 8, side));
  IS(cudaStreamEndCapture(side, &graph), cudaErrorStreamCaptureUnmatched);
  IS(cudaStreamEndCapture(on, &graph), cudaErrorStreamCaptureUnjoined);

  OK(cudaEventRecord(outside, side));
  OK(cudaStreamBeginCapture(on, cudaStreamCaptureModeRelaxed));
  IS(cudaStreamWaitEvent(on, outside, 0), cudaErrorStreamCaptureIsolation);
  IS(cudaStreamEndCapture(on, &graph), cudaErrorStreamCaptureInvalidated);
}
