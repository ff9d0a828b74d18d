// SPDX-License-Identifier: BSD-3-Clause
// The driver against the process around it: bad accesses, fork, and exit with work in flight.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>

#include "exporter.h"
#include "sim.h"

using namespace puone::test;

namespace {

size_t threadsOfProcess() {
  size_t threads = 0;
  FILE* status = std::fopen("/proc/self/status", "r");
  char line[256];
  while (std::fgets(line, sizeof line, status) != nullptr) {
    std::sscanf(line, "Threads: %zu", &threads);
  }
  std::fclose(status);
  return threads;
}

bool contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return true;
  report("standard error", 0, "\"" + text + "\" does not contain \"" + part + "\"");
  return false;
}

bool diedBadly(int status) {
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

// ---- processes that the tests start; their result is their exit status ----

int dereferenceOnHost() {
  Sim sim;
  const volatile int* device = sim.memory<int>(1024, 1);
  return device[3];
}

int dereferenceMemoryOfAnotherProcess() {
  const Exporter exporter(4096, 7);
  const Sim sim;
  const volatile auto* device = static_cast<unsigned char*>(opened(exporter.handle()));
  return device[3];
}

/// A handler that came later and, like Python's faulthandler, puts us back and raises again.
int dereferenceUnderLaterHandler() {
  static struct sigaction before;
  Sim sim;
  static char stack[64 << 10];
  stack_t alternate{};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof stack;
  sigaltstack(&alternate, nullptr);
  struct sigaction later{};
  later.sa_handler = [](int signal) {
    sigaction(signal, &before, nullptr);
    const char text[] = "later handler\n";
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(9);
    raise(signal);
  };
  later.sa_flags = SA_NODEFER | SA_ONSTACK;
  sigaction(SIGSEGV, &later, &before);
  const volatile int* device = sim.memory<int>(1024);
  return device[0];
}

int dereferenceUnderEarlierHandler() {
  struct sigaction earlier{};
  earlier.sa_handler = [](int) {
    const char text[] = "earlier handler\n";
    _exit(write(STDERR_FILENO, text, sizeof text - 1) > 0 ? 42 : 9);
  };
  sigaction(SIGSEGV, &earlier, nullptr);
  Sim sim;
  const volatile int* device = sim.memory<int>(1024);
  return device[0];
}

int overrunInKernel() {
  Sim sim;
  const puone_stream stream = sim.stream();
  puone_fill_args args{};
  args.ndim = 1;
  args.element_size = 4;
  args.sizes[0] = 2048;
  args.out.data = sim.memory<int>(1024);
  args.out.strides[0] = 4;
  args.value[0] = 1;
  sim.launch("fill", &args, sizeof args, stream);
  OK(hal().stream_synchronize(stream));
  return 0;
}

int kernelAfterFree() {
  Sim sim;
  const puone_stream stream = sim.stream();
  int* block = sim.memory<int>(1024);
  OK(hal().free(block));
  sim.memory<int>(1024); // must not take the same address
  puone_fill_args args{};
  args.element_size = 4;
  args.out.data = block;
  sim.launch("fill", &args, sizeof args, stream);
  OK(hal().stream_synchronize(stream));
  return 0;
}

int sentSignal() {
  const Sim sim;
  raise(SIGSEGV);
  return 0; // a swallowed signal
}

int exitWithWorkQueued() {
  auto* sim = new Sim; // nobody calls shutdown()
  for (int i = 0; i < 8; ++i) {
    const puone_stream stream = sim->stream(i % 2);
    auto* block = sim->memory<unsigned char>(1 << 20, i % 2);
    for (int k = 0; k < 50; ++k) OK(hal().memset_async(block, k, 1 << 20, stream));
    sim->delay(stream, 3'600'000'000'000);
    OK(hal().memset_async(block, 1, 1 << 20, stream));
  }
  std::exit(0);
}

int shutdownAtExitWithWorkQueued() {
  auto* sim = new Sim;
  std::atexit([] { OK(hal().shutdown()); });
  const puone_stream stream = sim->stream();
  auto* block = sim->memory<unsigned char>(1 << 20);
  for (int k = 0; k < 50; ++k) OK(hal().memset_async(block, k, 1 << 20, stream));
  sim->delay(stream, 10'000'000);
  std::exit(0);
}

/// What a thread sanitizer has to notice: two streams, one block, no event between them.
int raceBetweenStreams() {
  Sim sim;
  constexpr size_t bytes = size_t{1} << 20;
  auto* block = sim.memory<unsigned char>(bytes);
  for (int i = 0; i < 20; ++i) OK(hal().memset_async(block, i, bytes, sim.stream()));
  OK(hal().device_synchronize(0));
  return 0;
}

const std::map<std::string, int (*)()> kChildren = {
    {"dereference", dereferenceOnHost},
    {"dereference-opened", dereferenceMemoryOfAnotherProcess},
    {"dereference-later-handler", dereferenceUnderLaterHandler},
    {"dereference-earlier-handler", dereferenceUnderEarlierHandler},
    {"overrun", overrunInKernel},
    {"kernel-after-free", kernelAfterFree},
    {"sent-signal", sentSignal},
    {"exit", exitWithWorkQueued},
    {"atexit", shutdownAtExitWithWorkQueued},
    {"race", raceBetweenStreams},
};

} // namespace

namespace puone::test {
int runChild(const std::string& name) {
  return kChildren.at(name)();
}
} // namespace puone::test

TEST(a_host_access_to_device_memory_faults_with_device_and_offset) {
  const Outcome outcome = runAgain({"--child", "dereference"});
  CHECK(diedBadly(outcome.status));
  CHECK(
      contains(outcome.standard_error, "puone sim: host dereferenced device memory (puone:1 + 0x"));
}

TEST(a_host_access_to_memory_of_another_process_faults_too) {
  const Outcome outcome = runAgain({"--child", "dereference-opened"});
  CHECK(diedBadly(outcome.status));
  CHECK(
      contains(outcome.standard_error, "puone sim: host dereferenced device memory (puone:0 + 0x"));
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
// The sanitizers deliver a raised signal through handlers and a signal stack of their own.
TEST(the_line_is_written_when_another_handler_came_later) {
  const Outcome later = runAgain({"--child", "dereference-later-handler"});
  CHECK(diedBadly(later.status));
  CHECK(contains(later.standard_error, "later handler"));
  CHECK(contains(later.standard_error, "host dereferenced device memory"));
}
#endif

TEST(the_line_is_written_before_an_earlier_handler_runs) {
  const Outcome earlier = runAgain({"--child", "dereference-earlier-handler"});
  CHECK(diedBadly(earlier.status));
  CHECK(contains(earlier.standard_error, "host dereferenced device memory"));
  CHECK(contains(earlier.standard_error, "earlier handler"));
}

TEST(a_kernel_that_leaves_its_block_faults_by_name) {
  const Outcome overrun = runAgain({"--child", "overrun"});
  CHECK(diedBadly(overrun.status));
  CHECK(contains(
      overrun.standard_error, "kernel fill ran out of its memory: it touched puone:0 + 0x"));
  const Outcome freed = runAgain({"--child", "kernel-after-free"});
  CHECK(diedBadly(freed.status));
  CHECK(contains(freed.standard_error, "kernel fill ran out of its memory"));
}

TEST(a_segmentation_signal_that_was_sent_still_ends_the_process) {
  CHECK(diedBadly(runAgain({"--child", "sent-signal"}).status));
}

TEST(exit_with_work_queued_is_clean_with_and_without_shutdown) {
  CHECK_EQ(runAgain({"--child", "exit"}).status, 0);
  CHECK_EQ(runAgain({"--child", "atexit"}).status, 0);
}

TEST(no_thread_exists_before_work_needs_one_and_none_after_shutdown) {
  const size_t before = threadsOfProcess();
  {
    Sim sim;
    const puone_stream stream = sim.stream();
    sim.memory<int>(1024);
    const puone_event event = sim.event();
    OK(hal().event_record(event, stream));
    OK(hal().stream_synchronize(stream));
    OK(hal().device_synchronize(0));
    CHECK_EQ(threadsOfProcess(), before);
    sim.delay(stream, 1000);
    CHECK(threadsOfProcess() > before);
    OK(hal().stream_synchronize(stream));
  }
  CHECK_EQ(threadsOfProcess(), before);
}

TEST(a_fork_before_first_use_leaves_a_working_child) {
  const Sim sim; // initialised, no thread yet
  const int status = runForked([]() -> int {
    puone_stream stream = nullptr;
    void* block = nullptr;
    unsigned char byte = 0;
    bool good = hal().stream_create(0, 0, &stream) == PUONE_OK;
    good = good && hal().malloc(0, 64, &block) == PUONE_OK;
    good = good && hal().memset_async(block, 5, 64, stream) == PUONE_OK;
    good = good &&
           hal().memcpy_async(&byte, block, 1, PUONE_MEMCPY_DEVICE_TO_HOST, stream) == PUONE_OK;
    good = good && hal().stream_synchronize(stream) == PUONE_OK && byte == 5;
    good = good && hal().shutdown() == PUONE_OK;
    return good ? 0 : 1;
  });
  CHECK_EQ(status, 0);
}

TEST(a_fork_after_use_gives_clear_errors_and_never_hangs) {
  Sim sim;
  static puone_stream stream;
  stream = sim.stream();
  Gate gate(stream);
  const int status = runForked([]() -> int {
    int32_t count = 0;
    if (hal().device_count(&count) != PUONE_INTERNAL) return 1;
    if (std::strstr(hal().last_error_message(), "fork") == nullptr) return 2;
    if (hal().stream_synchronize(stream) != PUONE_INTERNAL) return 3;
    if (hal().device_synchronize(0) != PUONE_INTERNAL) return 4;
    if (hal().init() != PUONE_INTERNAL) return 5;
    if (hal().shutdown() != PUONE_OK) return 6;
    return 0;
  });
  CHECK_EQ(status, 0);
  gate.open();
  OK(hal().stream_synchronize(stream)); // the parent goes on
}

TEST(a_fork_amid_other_threads_calls_never_hangs) {
  Sim sim;
  std::atomic<bool> stop{false};
  sim.delay(sim.stream(), 1000); // from here on there are threads
  std::thread busy([&] {
    const puone_stream stream = sim.stream();
    while (!stop) {
      void* block = nullptr;
      OK(hal().malloc(0, 4096, &block));
      OK(hal().memset_async(block, 1, 4096, stream));
      OK(hal().free(block));
    }
  });
  for (int i = 0; i < 20; ++i) {
    CHECK_EQ(
        runForked([]() -> int {
          void* block = nullptr;
          return hal().malloc(0, 64, &block) == PUONE_INTERNAL ? 0 : 1;
        }),
        0);
  }
  stop = true;
  busy.join();
}
