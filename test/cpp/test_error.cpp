// SPDX-License-Identifier: BSD-3-Clause
// Planted faults, and errors that surface later than the call that caused them.
#include <atomic>
#include <chrono>

#include "sim.h"

using namespace puone::test;

namespace {

void fill(Sim& sim, unsigned char* out, unsigned char value, puone_stream stream) {
  puone_fill_args args{};
  args.ndim = 0;
  args.element_size = 1;
  args.out.data = out;
  args.value[0] = value;
  sim.launch("fill", &args, sizeof args, stream);
}

} // namespace

TEST(a_failed_kernel_surfaces_by_name_at_the_next_synchronisation_once) {
  Sim sim;
  const puone_stream stream = sim.stream();
  const puone_stream other = sim.stream();
  unsigned char* byte = sim.memory<unsigned char>(1);
  fill(sim, byte, 1, stream);
  OK(fault().kernel_error_at(2));
  fill(sim, byte, 2, stream);
  fill(sim, byte, 3, stream);                 // accepted, will fail
  OK(hal().memset_async(byte, 4, 1, stream)); // skipped, since it comes after
  OK(hal().stream_synchronize(other));        // does not cover it
  STATUS(hal().stream_synchronize(stream), PUONE_INTERNAL);
  CHECK(errorSays("kernel fill"));
  OK(hal().stream_synchronize(stream)); // reported, so gone
  CHECK_EQ(sim.value(byte, stream), 2);
  OK(hal().memset_async(byte, 5, 1, stream));
  CHECK_EQ(sim.value(byte, stream), 5);
}

TEST(device_synchronize_reports_the_oldest_error_first) {
  Sim sim;
  const puone_stream a = sim.stream();
  const puone_stream b = sim.stream();
  unsigned char* byte = sim.memory<unsigned char>(1);
  OK(fault().kernel_error_at(1));
  fill(sim, byte, 1, a);
  // b's turn comes only when a's work has failed.
  const puone_event failed = sim.event();
  OK(hal().event_record(failed, a));
  OK(hal().stream_wait_event(b, failed));
  OK(fault().kernel_error_at(1));
  sim.delay(b, 1);
  STATUS(hal().device_synchronize(0), PUONE_INTERNAL);
  CHECK(errorSays("kernel fill"));
  STATUS(hal().device_synchronize(0), PUONE_INTERNAL);
  CHECK(errorSays("kernel delay"));
  OK(hal().device_synchronize(0));
}

TEST(queries_and_events_report_the_errors_they_cover) {
  Sim sim;
  const puone_stream stream = sim.stream();
  const puone_event before = sim.event();
  const puone_event after = sim.event();
  unsigned char* byte = sim.memory<unsigned char>(1);
  for (int round = 0; round < 2; ++round) {
    OK(hal().event_record(before, stream));
    OK(fault().kernel_error_at(1));
    fill(sim, byte, 1, stream);
    OK(hal().event_record(after, stream));
    OK(hal().event_synchronize(before));
    if (round == 0) {
      STATUS(hal().event_synchronize(after), PUONE_INTERNAL);
    } else {
      puone_status status = PUONE_NOT_READY;
      while (status == PUONE_NOT_READY) status = hal().event_query(after);
      STATUS(status, PUONE_INTERNAL);
    }
    CHECK(errorSays("kernel fill"));
    OK(hal().event_query(after));
    OK(hal().stream_query(stream));
  }
  OK(fault().kernel_error_at(1));
  fill(sim, byte, 1, stream);
  puone_status status = PUONE_NOT_READY;
  while (status == PUONE_NOT_READY) status = hal().stream_query(stream);
  STATUS(status, PUONE_INTERNAL);
}

TEST(an_error_of_a_destroyed_stream_is_not_lost) {
  Sim sim;
  const puone_stream stream = sim.stream();
  OK(fault().kernel_error_at(1));
  sim.delay(stream, 1000);
  OK(hal().stream_destroy(stream));
  STATUS(hal().device_synchronize(0), PUONE_INTERNAL);
  CHECK(errorSays("kernel delay"));
  OK(hal().device_synchronize(0));
}

TEST(a_host_function_after_an_unreported_error_does_not_run) {
  Sim sim;
  const puone_stream stream = sim.stream();
  std::atomic<int> ran{0};
  const auto count = [](void* data) { ++*static_cast<std::atomic<int>*>(data); };
  OK(fault().kernel_error_at(1));
  sim.delay(stream, 1000);
  OK(hal().stream_host_func(stream, count, &ran));
  STATUS(hal().stream_synchronize(stream), PUONE_INTERNAL);
  CHECK_EQ(ran.load(), 0);
  OK(hal().stream_host_func(stream, count, &ran));
  OK(hal().stream_synchronize(stream));
  CHECK_EQ(ran.load(), 1);
}

TEST(a_stream_that_waits_for_a_failed_one_goes_on) {
  Sim sim;
  const puone_stream bad = sim.stream();
  const puone_stream good = sim.stream();
  const puone_event event = sim.event();
  unsigned char* byte = sim.memory<unsigned char>(1);
  OK(fault().kernel_error_at(1));
  sim.delay(bad, 1000);
  OK(hal().event_record(event, bad));
  OK(hal().stream_wait_event(good, event));
  OK(hal().memset_async(byte, 6, 1, good));
  CHECK_EQ(sim.value(byte, good), 6);
  STATUS(hal().stream_synchronize(bad), PUONE_INTERNAL);
}

TEST(out_of_memory_strikes_once_at_the_nth_allocation) {
  Sim sim;
  void* block = nullptr;
  OK(fault().out_of_memory_at(2));
  OK(hal().malloc(0, 16, &block));
  void* second = nullptr;
  STATUS(hal().malloc(0, 16, &second), PUONE_OUT_OF_MEMORY);
  CHECK(errorSays("injected"));
  CHECK(second == nullptr);
  OK(hal().malloc(0, 16, &second));
  OK(fault().out_of_memory_at(1));
  OK(fault().out_of_memory_at(0));
  OK(hal().malloc(0, 16, &block));
}

TEST(latency_makes_work_last_and_goes_away) {
  Sim sim;
  const puone_stream stream = sim.stream();
  unsigned char* byte = sim.memory<unsigned char>(1);
  OK(fault().latency_ns(20'000'000));
  auto start = std::chrono::steady_clock::now();
  OK(hal().memset_async(byte, 1, 1, stream));
  OK(hal().memset_async(byte, 2, 1, stream));
  STATUS(hal().stream_query(stream), PUONE_NOT_READY);
  OK(hal().stream_synchronize(stream));
  CHECK(std::chrono::steady_clock::now() - start >= std::chrono::milliseconds(40));
  OK(fault().reset());
  start = std::chrono::steady_clock::now();
  CHECK_EQ(sim.value(byte, stream), 2);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::milliseconds(20));
}

TEST(a_lost_device_drops_its_work_and_answers_lost_until_reset) {
  Sim sim;
  const puone_stream lost = sim.stream(1);
  const puone_stream fine = sim.stream(0);
  const puone_stream blocked = sim.stream(1);
  const puone_event held = sim.event(0, 0);
  const puone_event event = sim.event(0, 1);
  unsigned char* byte = sim.memory<unsigned char>(1, 1);
  Gate gate(fine);
  OK(hal().event_record(held, fine));
  OK(hal().stream_wait_event(blocked, held));
  sim.delay(lost, 3'600'000'000'000); // an hour, to be dropped
  OK(hal().memset_async(byte, 1, 1, lost));
  OK(hal().event_record(event, lost));
  OK(hal().stream_wait_event(fine, event)); // must not hang
  OK(fault().device_lost(1));
  STATUS(hal().stream_synchronize(lost), PUONE_DEVICE_LOST);
  STATUS(hal().stream_synchronize(lost), PUONE_DEVICE_LOST); // stays
  STATUS(hal().stream_synchronize(blocked), PUONE_DEVICE_LOST);
  STATUS(hal().device_synchronize(1), PUONE_DEVICE_LOST);
  STATUS(hal().event_query(event), PUONE_DEVICE_LOST);
  STATUS(hal().stream_query(lost), PUONE_DEVICE_LOST);
  puone_stream none = nullptr;
  STATUS(hal().stream_create(1, 0, &none), PUONE_DEVICE_LOST);
  CHECK(none == nullptr);
  STATUS(hal().memset_async(byte, 1, 1, lost), PUONE_DEVICE_LOST);
  STATUS(hal().memset_async(byte, 1, 1, fine), PUONE_DEVICE_LOST);
  CHECK(errorSays("puone:1 is lost"));
  gate.open();
  OK(hal().device_synchronize(0));
  OK(fault().reset());
  OK(hal().memset_async(byte, 8, 1, lost));
  CHECK_EQ(sim.value(byte, lost), 8);
  OK(hal().free(byte));
}

TEST(bad_kernel_arguments_are_refused_or_fail_by_name) {
  Sim sim;
  const puone_stream stream = sim.stream();
  puone_kernel kernel = nullptr;
  STATUS(hal().kernel_find("nosuch", nullptr, &kernel), PUONE_UNSUPPORTED);
  CHECK(kernel == nullptr);
  OK(hal().kernel_find("fill", nullptr, &kernel));
  puone_fill_args args{};
  STATUS(
      hal().kernel_launch(kernel, &args, sizeof args - 1, stream, nullptr), PUONE_INVALID_ARGUMENT);
  CHECK(errorSays("bytes of arguments"));
  STATUS(
      hal().kernel_launch(kernel, nullptr, sizeof args, stream, nullptr), PUONE_INVALID_ARGUMENT);
  int host = 0;
  args.element_size = 4;
  args.out.data = &host; // neither device nor pinned memory
  OK(hal().kernel_launch(kernel, &args, sizeof args, stream, nullptr));
  STATUS(hal().stream_synchronize(stream), PUONE_INTERNAL);
  CHECK(errorSays("neither device nor pinned"));
  args.element_size = 3;
  args.out.data = sim.memory<int>(1);
  OK(hal().kernel_launch(kernel, &args, sizeof args, stream, nullptr));
  STATUS(hal().stream_synchronize(stream), PUONE_INTERNAL);
  CHECK(errorSays("element_size"));
}
