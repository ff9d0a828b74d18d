// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "sim.h"

using namespace puone::test;

TEST(submission_returns_before_the_work_runs) {
  Sim sim;
  const puone_stream stream = sim.stream();
  int* value = sim.memory<int>(1);
  int host = 7;
  Gate gate(stream);
  sim.write(value, &host, sizeof host, stream);
  STATUS(hal().stream_query(stream), PUONE_NOT_READY);
  host = 8; // the copy has not run: it will see this
  gate.open();
  CHECK_EQ(sim.value(value, stream), 8);
  STATUS(hal().stream_query(stream), PUONE_OK);
}

TEST(work_of_one_stream_runs_in_order) {
  Sim sim;
  const puone_stream stream = sim.stream();
  unsigned char* bytes = sim.memory<unsigned char>(64);
  for (int i = 0; i < 2000; ++i) OK(hal().memset_async(bytes, i, 64, stream));
  CHECK_EQ(sim.value(bytes + 63, stream), static_cast<unsigned char>(1999));
}

TEST(host_functions_run_in_stream_order_on_another_thread) {
  Sim sim;
  const puone_stream stream = sim.stream();
  struct Seen {
    std::vector<int> order;
    std::thread::id thread;
  } seen;
  struct Call {
    Seen* seen;
    int index;
  };
  std::vector<Call> calls;
  for (int i = 0; i < 100; ++i) calls.push_back({&seen, i});
  for (Call& call : calls) {
    OK(hal().stream_host_func(
        stream,
        [](void* data) {
          const auto* c = static_cast<Call*>(data);
          c->seen->order.push_back(c->index);
          c->seen->thread = std::this_thread::get_id();
        },
        &call));
  }
  OK(hal().stream_synchronize(stream));
  CHECK_EQ(seen.order.size(), size_t{100});
  for (int i = 0; i < 100; ++i) CHECK_EQ(seen.order[static_cast<size_t>(i)], i);
  CHECK(seen.thread != std::this_thread::get_id());
}

TEST(a_host_function_must_not_call_back) {
  Sim sim;
  const puone_stream stream = sim.stream();
  struct Result {
    puone_status status;
    std::string message;
  } result{};
  OK(hal().stream_host_func(
      stream,
      [](void* data) {
        int32_t count = 0;
        auto* r = static_cast<Result*>(data);
        *r = {hal().device_count(&count), hal().last_error_message()};
      },
      &result));
  OK(hal().stream_synchronize(stream));
  CHECK_EQ(result.status, PUONE_INTERNAL);
  CHECK(result.message.find("called from within stream_host_func") != std::string::npos);
}

TEST(a_blocked_host_function_stops_no_other_stream) {
  Sim sim;
  std::vector<puone_stream> held;
  std::vector<std::unique_ptr<Gate>> gates;
  for (int i = 0; i < 40; ++i) {
    held.push_back(sim.stream(i % 2));
    gates.push_back(std::make_unique<Gate>(held.back()));
  }
  const puone_stream free_stream = sim.stream();
  int* value = sim.memory<int>(1);
  const int host = 5;
  sim.write(value, &host, sizeof host, free_stream);
  CHECK_EQ(sim.value(value, free_stream), 5);
  std::atomic<int> ran{0};
  OK(hal().stream_host_func(
      free_stream, [](void* data) { ++*static_cast<std::atomic<int>*>(data); }, &ran));
  OK(hal().stream_synchronize(free_stream));
  CHECK_EQ(ran.load(), 1);
  for (const puone_stream stream : held) STATUS(hal().stream_query(stream), PUONE_NOT_READY);
  for (const auto& gate : gates) gate->open();
  OK(hal().device_synchronize(0));
  OK(hal().device_synchronize(1));
}

TEST(more_blocked_host_functions_than_threads_still_finish) {
  Sim sim;
  std::vector<std::unique_ptr<Gate>> gates;
  for (int i = 0; i < 100; ++i) gates.push_back(std::make_unique<Gate>(sim.stream()));
  const puone_stream stream = sim.stream();
  const unsigned char* byte = sim.memory<unsigned char>(1);
  OK(hal().memset_async(const_cast<unsigned char*>(byte), 3, 1, stream));
  CHECK_EQ(sim.value(byte, stream), 3);
  for (const auto& gate : gates) gate->open();
  OK(hal().device_synchronize(0));
}

TEST(device_synchronize_waits_for_its_device_only) {
  Sim sim;
  const puone_stream here = sim.stream(0);
  const puone_stream there = sim.stream(1);
  Gate gate(there);
  sim.delay(here, 5'000'000);
  OK(hal().device_synchronize(0));
  STATUS(hal().stream_query(here), PUONE_OK);
  STATUS(hal().stream_query(there), PUONE_NOT_READY);
  gate.open();
  OK(hal().device_synchronize(1));
  STATUS(hal().stream_query(there), PUONE_OK);
}

TEST(a_destroyed_stream_still_runs_its_work_and_its_handle_is_dead) {
  Sim sim;
  puone_stream stream = sim.stream();
  unsigned char* byte = sim.memory<unsigned char>(1);
  sim.delay(stream, 2'000'000);
  OK(hal().memset_async(byte, 9, 1, stream));
  OK(hal().stream_destroy(stream));
  STATUS(hal().stream_query(stream), PUONE_INVALID_ARGUMENT);
  CHECK(errorSays("has been destroyed"));
  STATUS(hal().stream_destroy(stream), PUONE_INVALID_ARGUMENT);
  OK(hal().stream_destroy(nullptr));
  OK(hal().device_synchronize(0));
  CHECK_EQ(sim.value(byte, sim.stream()), 9);
  // New streams do not bring the old handle back to life.
  for (int i = 0; i < 10; ++i) sim.stream();
  STATUS(hal().stream_synchronize(stream), PUONE_INVALID_ARGUMENT);
}

TEST(handles_of_the_wrong_kind_are_refused) {
  Sim sim;
  const puone_event event = sim.event();
  STATUS(hal().stream_query(reinterpret_cast<puone_stream>(event)), PUONE_INVALID_ARGUMENT);
  STATUS(hal().stream_query(nullptr), PUONE_INVALID_ARGUMENT);
  STATUS(
      hal().event_query(reinterpret_cast<puone_event>(uintptr_t{0x1234567})),
      PUONE_INVALID_ARGUMENT);
  int local = 0;
  STATUS(
      hal().kernel_launch(reinterpret_cast<puone_kernel>(&local), &local, 4, sim.stream(), nullptr),
      PUONE_INVALID_ARGUMENT);
}

TEST(priorities_are_clamped_and_the_urgent_stream_goes_first) {
  Sim sim({{"PUONE_SIM_CORES", "1"}});
  int32_t least = -1;
  int32_t greatest = 1;
  OK(hal().stream_priority_range(0, &least, &greatest));
  CHECK(least >= 0 && greatest < least);
  sim.stream(0, 1000);
  sim.stream(0, -1000);
  // Many streams become ready at once: the urgent one, queued last, must not be last.
  std::atomic<bool> all_queued{false};
  const puone_stream gate = sim.stream(0, greatest);
  const puone_event opened = sim.event(0);
  OK(hal().stream_host_func(
      gate, [](void* data) { static_cast<std::atomic<bool>*>(data)->wait(false); }, &all_queued));
  OK(hal().event_record(opened, gate));
  std::vector<puone_stream> low;
  std::atomic<int> low_done{0};
  int low_done_before_urgent = -1;
  struct Urgent {
    std::atomic<int>* low_done;
    int* seen;
  } urgent{&low_done, &low_done_before_urgent};
  for (int i = 0; i < 50; ++i) low.push_back(sim.stream(0, least));
  const puone_stream first = sim.stream(0, greatest);
  constexpr size_t bytes = size_t{1} << 20; // longer than a host function takes to be called
  for (const puone_stream stream : low) {
    auto* block = sim.memory<unsigned char>(bytes);
    OK(hal().stream_wait_event(stream, opened));
    for (int i = 0; i < 4; ++i) OK(hal().memset_async(block, i, bytes, stream));
    OK(hal().stream_host_func(
        stream, [](void* data) { ++*static_cast<std::atomic<int>*>(data); }, &low_done));
  }
  OK(hal().stream_wait_event(first, opened));
  OK(hal().stream_host_func(
      first,
      [](void* data) {
        const auto* u = static_cast<Urgent*>(data);
        *u->seen = u->low_done->load();
      },
      &urgent));
  all_queued = true;
  all_queued.notify_all();
  OK(hal().device_synchronize(0));
  CHECK_EQ(low_done.load(), 50);
  CHECK(low_done_before_urgent < 25);
}

TEST(thousands_of_streams_run_and_go) {
  Sim sim;
  constexpr int count = 3000;
  int* counter = sim.memory<int>(count);
  std::vector<puone_stream> streams;
  for (int i = 0; i < count; ++i) {
    streams.push_back(sim.stream(0, -(i % 3)));
    OK(hal().memset_async(counter + i, i % 251, sizeof(int), streams.back()));
  }
  for (const puone_stream stream : streams) OK(hal().stream_destroy(stream));
  OK(hal().device_synchronize(0));
  const puone_stream stream = sim.stream();
  std::vector<int> host(count);
  sim.read(host.data(), counter, count * sizeof(int), stream);
  OK(hal().stream_synchronize(stream));
  for (int i = 0; i < count; ++i)
    CHECK_EQ(static_cast<unsigned>(host[static_cast<size_t>(i)]), i % 251 * 0x01010101u);
}

TEST(the_delay_kernel_lasts_and_holds_no_thread) {
  Sim sim;
  const auto start = std::chrono::steady_clock::now();
  std::vector<puone_stream> streams;
  for (int i = 0; i < 200; ++i) {
    streams.push_back(sim.stream());
    sim.delay(streams.back(), 30'000'000);
  }
  OK(hal().device_synchronize(0));
  const auto took = std::chrono::steady_clock::now() - start;
  CHECK(took >= std::chrono::milliseconds(30));
  CHECK(took < std::chrono::seconds(2)); // in turn they would take 6 s
}

TEST(a_native_handle_leads_back_to_its_stream_and_device) {
  Sim sim;
  const puone_stream stream = sim.stream(1);
  void* native = nullptr;
  OK(hal().stream_native_handle(stream, &native));
  puone_stream over = nullptr;
  STATUS(hal().stream_from_native(0, native, &over), PUONE_INVALID_ARGUMENT);
  STATUS(hal().stream_from_native(1, &over, &over), PUONE_INVALID_ARGUMENT);
  CHECK(over == nullptr);
  OK(hal().stream_from_native(1, native, &over));
  OK(hal().stream_destroy(stream));
  auto* byte = sim.memory<unsigned char>(1, 1);
  OK(hal().memset_async(byte, 3, 1, over)); // the stream lives as long as a handle
  CHECK_EQ(sim.value(byte, over), 3);
}
