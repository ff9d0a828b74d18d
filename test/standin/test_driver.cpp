// SPDX-License-Identifier: BSD-3-Clause
// The cuda driver over the stand-in, when calls of CUDA fail: the status that it returns, and that
// nothing leaks.
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "check.h"
#include "child.h"
#include "driver.h"
#include "hal/hal.h"
#include "kernels/args.h"
#include "standin.h"

using namespace puone::test;

namespace {

/// The driver between init() and shutdown(), over a stand-in with these variables. At the end
/// nothing of CUDA's may be left, neither an object nor an error in cudaGetLastError().
class Driver {
 public:
  using Variables = std::initializer_list<std::pair<std::string, std::string>>;

  Driver() : Driver(Variables{}) {}
  explicit Driver(Variables variables) : variables_(variables) {
    for (const auto& [name, value] : variables_) {
      setenv(("PUONE_STANDIN_" + name).c_str(), value.c_str(), 1);
    }
    standinReset();
    OK(hal().init());
  }
  ~Driver() {
    CHECK_EQ(static_cast<int>(cudaPeekAtLastError()), static_cast<int>(last_error));
    OK(hal().shutdown());
    const StandinLive live = standinLive();
    if (last_error == cudaSuccess) {
      CHECK_EQ(live.streams + live.events + live.graphs + live.pools, size_t{0});
      CHECK_EQ(live.device_blocks + live.pinned_blocks, size_t{0});
    }
    for (const auto& [name, value] : variables_) unsetenv(("PUONE_STANDIN_" + name).c_str());
    standinReset();
  }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  puone_stream stream(int32_t device = 0) {
    puone_stream made = nullptr;
    OK(hal().stream_create(device, 0, &made));
    return made;
  }
  void* block(size_t bytes) {
    void* made = nullptr;
    OK(hal().malloc(0, bytes, &made));
    return made;
  }
  puone_status delay(puone_stream on) {
    const puone_delay_args args{0};
    puone_kernel kernel = nullptr;
    OK(hal().kernel_find("delay", nullptr, &kernel));
    return hal().kernel_launch(kernel, &args, sizeof args, on, nullptr);
  }

  cudaError_t last_error = cudaSuccess; // that is to be found at the end: a sticky one

 private:
  const std::vector<std::pair<std::string, std::string>> variables_;
};

} // namespace

// First, since the driver counts the devices once in a process.
TEST(without_a_driver_or_a_device_there_is_none_and_nothing_fails) {
  for (const char* guise : {"NO_DRIVER", "DEVICES"}) {
    const auto count = [=] {
      Driver driver({{guise, guise[0] == 'N' ? "1" : "0"}});
      int32_t devices = -1;
      OK(hal().device_count(&devices));
      CHECK_EQ(devices, 0);
    };
    inChild(count);
  }
}

TEST(errors_of_cuda_have_a_status_and_a_text) {
  struct Case {
    cudaError_t native;
    puone_status status;
  };
  for (const auto& [native, status] : {
           Case{cudaErrorMemoryAllocation, PUONE_OUT_OF_MEMORY},
           Case{cudaErrorInvalidValue, PUONE_INVALID_ARGUMENT},
           Case{cudaErrorUnknown, PUONE_INTERNAL},
           Case{cudaErrorNotSupported, PUONE_UNSUPPORTED},
       }) {
    Driver driver({{"FAIL", "cudaMalloc:1=" + std::to_string(native)}});
    void* out = nullptr;
    STATUS(hal().malloc(0, 64, &out), status);
    CHECK(errorSays("cudaMalloc"));
    CHECK(errorSays(cudaGetErrorName(native)));
    OK(hal().malloc(0, 64, &out)); // once
    OK(hal().free(out));
  }
}

TEST(memory_that_runs_out_comes_back) {
  Driver driver({{"MEMORY", "8"}});
  void* most = driver.block(6 << 20);
  void* more = nullptr;
  STATUS(hal().malloc(0, 4 << 20, &more), PUONE_OUT_OF_MEMORY);
  STATUS(hal().malloc(0, size_t{1} << 40, &more), PUONE_OUT_OF_MEMORY);
  OK(hal().free(most));
  OK(hal().malloc(0, 4 << 20, &more));
}

TEST(a_refused_creation_leaves_nothing) {
  Driver driver({{"FAIL", "cudaStreamCreateWithPriority:1=2,cudaEventCreateWithFlags:1=2"}});
  puone_stream on = nullptr;
  STATUS(hal().stream_create(0, 0, &on), PUONE_OUT_OF_MEMORY);
  OK(hal().stream_create(0, 0, &on));
  puone_event event = nullptr;
  STATUS(hal().event_create(0, 0, &event), PUONE_OUT_OF_MEMORY);
  OK(hal().event_create(0, 0, &event));
  OK(hal().event_record(event, on));
  OK(hal().event_synchronize(event));
}

TEST(a_launch_that_cuda_refuses_is_reported_and_forgotten) {
  Driver driver({{"FAIL", "launch:1=701"}});
  const puone_stream on = driver.stream();
  STATUS(driver.delay(on), PUONE_INTERNAL);
  CHECK(errorSays("cudaErrorLaunchOutOfResources"));
  OK(driver.delay(on));
  OK(hal().stream_synchronize(on));
}

TEST(a_sticky_error_loses_the_device_and_no_other) {
  const auto lose = [](cudaError_t error) {
    Driver driver({{"FAIL", "kernel:1=" + std::to_string(error)}});
    driver.last_error = error;
    const puone_stream on = driver.stream(0);
    const puone_stream there = driver.stream(1);
    OK(driver.delay(on)); // accepted
    STATUS(hal().stream_synchronize(on), PUONE_DEVICE_LOST);
    CHECK(errorSays(cudaGetErrorName(driver.last_error)));
    void* out = nullptr;
    STATUS(hal().malloc(0, 64, &out), PUONE_DEVICE_LOST);
    STATUS(hal().device_synchronize(0), PUONE_DEVICE_LOST);
    STATUS(hal().stream_synchronize(on), PUONE_DEVICE_LOST);         // for ever
    STATUS(hal().stream_native_handle(on, &out), PUONE_DEVICE_LOST); // asks CUDA nothing
    OK(hal().stream_synchronize(there));
    OK(hal().device_synchronize(1));
    OK(hal().malloc(1, 64, &out));
    OK(hal().memset_async(out, 1, 64, there));
    OK(hal().stream_synchronize(there));
    CHECK_EQ(static_cast<int>(cudaSetDevice(0)), 0); // whose error is to be found at the end
  };
  for (const cudaError_t error :
       {cudaErrorIllegalAddress, cudaErrorLaunchFailure, cudaErrorECCUncorrectable}) {
    inChild([=] { lose(error); });
  }
}

TEST(pinned_memory_needs_one_device_that_is_not_lost) {
  inChild([] {
    Driver driver({{"FAIL", "kernel:1=700"}});
    driver.last_error = cudaErrorIllegalAddress;
    const puone_stream on = driver.stream(0);
    OK(driver.delay(on));
    STATUS(hal().stream_synchronize(on), PUONE_DEVICE_LOST);
    void* pinned = nullptr;
    OK(hal().host_malloc(64, &pinned)); // by puone:1, which nothing has used yet
    OK(hal().host_free(pinned));
    standinLoseDevice(1, cudaErrorIllegalAddress);
    for (int i = 0; i < 2; ++i) STATUS(hal().host_malloc(64, &pinned), PUONE_DEVICE_LOST);
  });
}

TEST(a_new_stream_has_no_work) {
  Driver driver;
  const puone_stream old = driver.stream();
  const puone_delay_args args{30'000'000};
  puone_kernel kernel = nullptr;
  OK(hal().kernel_find("delay", nullptr, &kernel));
  OK(hal().kernel_launch(kernel, &args, sizeof args, old, nullptr));
  OK(hal().stream_destroy(old)); // its work goes on
  const puone_stream fresh = driver.stream();
  OK(hal().stream_query(fresh));
}

TEST(each_stream_is_waited_for_by_itself) {
  Driver driver;
  const puone_delay_args args{10'000'000};
  puone_kernel kernel = nullptr;
  OK(hal().kernel_find("delay", nullptr, &kernel));
  for (int i = 0; i < 2; ++i) {
    const puone_stream on = driver.stream();
    OK(hal().kernel_launch(kernel, &args, sizeof args, on, nullptr));
    OK(hal().stream_synchronize(on));
    OK(hal().stream_query(on));
  }
}

TEST(a_pooled_event_measures_if_asked_to) {
  Driver driver;
  const puone_stream on = driver.stream();
  puone_event event = nullptr;
  OK(hal().event_create(0, PUONE_EVENT_DEFAULT, &event));
  OK(hal().event_destroy(event));
  puone_event begin = nullptr;
  puone_event end = nullptr;
  OK(hal().event_create(0, PUONE_EVENT_TIMING, &begin));
  OK(hal().event_create(0, PUONE_EVENT_TIMING, &end));
  OK(hal().event_record(begin, on));
  OK(hal().event_record(end, on));
  OK(hal().event_synchronize(end));
  float ms = -1;
  OK(hal().event_elapsed_ms(begin, end, &ms));
  CHECK(ms >= 0);
}

TEST(queries_leave_no_error_behind) {
  Driver driver;
  const puone_stream on = driver.stream();
  puone_event event = nullptr;
  OK(hal().event_create(0, 0, &event));
  const puone_delay_args args{20'000'000};
  puone_kernel kernel = nullptr;
  OK(hal().kernel_find("delay", nullptr, &kernel));
  OK(hal().kernel_launch(kernel, &args, sizeof args, on, nullptr));
  OK(hal().event_record(event, on));
  STATUS(hal().stream_query(on), PUONE_NOT_READY);
  CHECK_EQ(static_cast<int>(cudaPeekAtLastError()), 0);
  STATUS(hal().event_query(event), PUONE_NOT_READY);
  CHECK_EQ(static_cast<int>(cudaPeekAtLastError()), 0);
  OK(hal().stream_synchronize(on));
}

TEST(a_call_leaves_its_device_current) {
  Driver driver;
  const puone_stream on = driver.stream(1);
  const auto current = [] {
    int device = -1;
    CHECK_EQ(static_cast<int>(cudaGetDevice(&device)), 0);
    return device;
  };
  CHECK_EQ(current(), 1);
  CHECK_EQ(static_cast<int>(cudaSetDevice(0)), 0);
  OK(driver.delay(on)); // whatever another user of CUDA has made current
  CHECK_EQ(current(), 1);
  OK(hal().stream_synchronize(on));
  OK(hal().device_synchronize(0));
  CHECK_EQ(static_cast<int>(cudaSetDevice(0)), 0);
}

TEST(work_runs_on_a_stream_that_another_user_of_cuda_owns) {
  Driver driver;
  unsigned char* block = static_cast<unsigned char*>(driver.block(64));
  unsigned char seen = 0;
  cudaStream_t native = nullptr;
  CHECK_EQ(static_cast<int>(cudaStreamCreateWithFlags(&native, cudaStreamNonBlocking)), 0);
  puone_stream over = nullptr;
  OK(hal().stream_from_native(0, native, &over));
  void* handle = nullptr;
  OK(hal().stream_native_handle(over, &handle));
  CHECK(handle == native);
  OK(hal().memset_async(block, 7, 64, over));
  OK(hal().memcpy_async(&seen, block, 1, PUONE_MEMCPY_DEVICE_TO_HOST, over));
  CHECK_EQ(static_cast<int>(cudaStreamSynchronize(native)), 0); // theirs, and so the work's
  CHECK_EQ(static_cast<int>(seen), 7);
  OK(hal().stream_destroy(over));
  CHECK_EQ(static_cast<int>(cudaStreamQuery(native)), 0); // it lives
  CHECK_EQ(static_cast<int>(cudaStreamDestroy(native)), 0);
  OK(hal().device_synchronize(0));
}

TEST(a_stream_of_another_device_is_refused) {
  Driver driver;
  void* native = nullptr;
  OK(hal().stream_native_handle(driver.stream(1), &native));
  puone_stream over = nullptr;
  STATUS(hal().stream_from_native(0, native, &over), PUONE_INVALID_ARGUMENT);
  CHECK(errorSays("is a stream of puone:1, not of puone:0"));
  CHECK(over == nullptr);
  OK(hal().stream_from_native(1, native, &over));
}

TEST(a_stream_is_accepted_where_cuda_cannot_give_its_device) {
  const int too_old = cudaErrorCallRequiresNewerDriver;
  Driver driver({{"FAIL", "cudaStreamGetDevice:1=" + std::to_string(too_old)}});
  void* native = nullptr;
  OK(hal().stream_native_handle(driver.stream(), &native));
  puone_stream over = nullptr;
  OK(hal().stream_from_native(0, native, &over));
}

TEST(shutdown_ends_a_capture) {
  Driver driver;
  const void* table = nullptr;
  OK(hal().get_extension(PUONE_GRAPH_EXTENSION, PUONE_GRAPH_VERSION, &table));
  const auto& graphs = *static_cast<const puone_graph_api*>(table);
  const puone_stream on = driver.stream();
  OK(graphs.capture_begin(on));
  OK(driver.delay(on));
}

TEST(shutdown_gives_back_what_the_caller_forgot) {
  Driver driver({{"SEED", "7"}});
  const puone_stream on = driver.stream(0);
  const puone_stream there = driver.stream(1);
  void* block = driver.block(4096);
  void* pinned = nullptr;
  puone_event event = nullptr;
  OK(hal().host_malloc(4096, &pinned));
  OK(hal().event_create(0, PUONE_EVENT_TIMING, &event));
  for (int i = 0; i < 20; ++i) {
    OK(hal().memset_async(block, i, 4096, on));
    OK(hal().memcpy_async(pinned, block, 4096, PUONE_MEMCPY_DEVICE_TO_HOST, on));
    OK(hal().event_record(event, on));
    OK(hal().stream_wait_event(there, event));
    OK(driver.delay(there));
  }
}
