// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include "sim.h"

using namespace puone::test;

TEST(an_event_never_recorded_counts_as_complete) {
  Sim sim;
  const puone_event event = sim.event();
  const puone_stream stream = sim.stream();
  OK(hal().event_query(event));
  OK(hal().event_synchronize(event));
  OK(hal().stream_wait_event(stream, event));
  OK(hal().stream_query(stream));
}

TEST(an_event_completes_with_the_work_before_it_and_not_the_work_after) {
  Sim sim;
  const puone_stream stream = sim.stream();
  const puone_event event = sim.event(PUONE_EVENT_BLOCKING_SYNC);
  Gate before(stream);
  OK(hal().event_record(event, stream));
  Gate after(stream);
  STATUS(hal().event_query(event), PUONE_NOT_READY);
  before.open();
  OK(hal().event_synchronize(event));
  OK(hal().event_query(event));
  STATUS(hal().stream_query(stream), PUONE_NOT_READY);
}

TEST(work_after_a_wait_sees_what_was_recorded_also_across_devices) {
  Sim sim;
  const puone_stream producer = sim.stream(0);
  const puone_stream consumer = sim.stream(1);
  unsigned char* from = sim.memory<unsigned char>(4096, 0);
  unsigned char* to = sim.memory<unsigned char>(4096, 1);
  for (int round = 1; round < 200; ++round) {
    const puone_event ready = sim.event(0, 0);
    const puone_event taken = sim.event(0, 1);
    if (round % 50 == 0) sim.delay(producer, 1'000'000);
    OK(hal().memset_async(from, round, 4096, producer));
    OK(hal().event_record(ready, producer));
    OK(hal().stream_wait_event(consumer, ready));
    sim.move(to, from, 4096, consumer);
    OK(hal().event_record(taken, consumer));
    OK(hal().stream_wait_event(producer, taken)); // before the next round overwrites
    OK(hal().event_destroy(ready));               // waits already queued still hold
    OK(hal().event_destroy(taken));
    CHECK_EQ(sim.value(to + 4095, consumer), static_cast<unsigned char>(round));
  }
}

TEST(a_wait_holds_no_thread_and_long_chains_resolve) {
  Sim sim;
  constexpr int count = 2000;
  std::vector<puone_stream> streams;
  const puone_stream first = sim.stream();
  puone_event previous = sim.event();
  unsigned char* byte = sim.memory<unsigned char>(1);
  Gate gate(first);
  OK(hal().event_record(previous, first));
  for (int i = 0; i < count; ++i) {
    const puone_stream stream = sim.stream();
    OK(hal().stream_wait_event(stream, previous));
    OK(hal().memset_async(byte, i, 1, stream));
    previous = sim.event();
    OK(hal().event_record(previous, stream));
    STATUS(hal().stream_query(stream), PUONE_NOT_READY);
  }
  gate.open();
  OK(hal().event_synchronize(previous));
  CHECK_EQ(sim.value(byte, first), static_cast<unsigned char>(count - 1));
}

TEST(recording_again_forgets_the_earlier_record_but_not_queued_waits) {
  Sim sim;
  const puone_stream slow = sim.stream();
  const puone_stream fast = sim.stream();
  const puone_stream waiter = sim.stream();
  const puone_event event = sim.event();
  Gate gate(slow);
  OK(hal().event_record(event, slow));
  OK(hal().stream_wait_event(waiter, event));
  OK(hal().event_record(event, fast));
  OK(hal().event_synchronize(event)); // the record on fast
  STATUS(hal().stream_query(waiter), PUONE_NOT_READY);
  gate.open();
  OK(hal().stream_synchronize(waiter));
}

TEST(elapsed_time_measures_the_work_between) {
  Sim sim;
  const puone_stream stream = sim.stream();
  const puone_event start = sim.event(PUONE_EVENT_TIMING);
  const puone_event end = sim.event(PUONE_EVENT_TIMING);
  float ms = -1;
  STATUS(hal().event_elapsed_ms(start, end, &ms), PUONE_INVALID_ARGUMENT);
  OK(hal().event_record(start, stream));
  sim.delay(stream, 20'000'000);
  OK(hal().event_record(end, stream));
  STATUS(hal().event_elapsed_ms(start, end, &ms), PUONE_NOT_READY);
  CHECK_EQ(ms, -1.0f);
  OK(hal().event_synchronize(end));
  OK(hal().event_elapsed_ms(start, end, &ms));
  CHECK(ms >= 20.0f && ms < 2000.0f);
  float back = 0;
  OK(hal().event_elapsed_ms(end, start, &back));
  CHECK_EQ(back, -ms);
}

TEST(elapsed_time_needs_two_timed_events_of_one_device) {
  Sim sim;
  const puone_stream here = sim.stream(0);
  const puone_stream there = sim.stream(1);
  const puone_event plain = sim.event();
  const puone_event timed = sim.event(PUONE_EVENT_TIMING);
  const puone_event other = sim.event(PUONE_EVENT_TIMING, 1);
  OK(hal().event_record(plain, here));
  OK(hal().event_record(timed, here));
  OK(hal().event_record(other, there));
  float ms = 0;
  STATUS(hal().event_elapsed_ms(plain, timed, &ms), PUONE_INVALID_ARGUMENT);
  STATUS(hal().event_elapsed_ms(timed, other, &ms), PUONE_INVALID_ARGUMENT);
  OK(hal().event_elapsed_ms(timed, timed, &ms));
  CHECK_EQ(ms, 0.0f);
}

TEST(event_misuse_is_refused) {
  Sim sim;
  puone_event event = nullptr;
  STATUS(hal().event_create(0, 1u << 7, &event), PUONE_INVALID_ARGUMENT);
  CHECK(event == nullptr);
  event = sim.event();
  STATUS(hal().event_record(event, sim.stream(1)), PUONE_INVALID_ARGUMENT);
  CHECK(errorSays("device 1"));
  OK(hal().event_destroy(event));
  STATUS(hal().event_query(event), PUONE_INVALID_ARGUMENT);
  OK(hal().event_destroy(nullptr));
}

TEST(thousands_of_events_recorded_and_destroyed) {
  Sim sim;
  const puone_stream stream = sim.stream();
  for (int i = 0; i < 10000; ++i) {
    const puone_event event = sim.event();
    if (i % 100 == 0) sim.delay(stream, 1000);
    OK(hal().event_record(event, stream));
    OK(hal().event_destroy(event));
  }
  OK(hal().stream_synchronize(stream));
}
