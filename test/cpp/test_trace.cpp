// SPDX-License-Identifier: BSD-3-Clause
// Traces: the times of work, where it lasts longer than it runs, is skipped, or is lost.
#include "sim.h"

using namespace puone::test;

namespace {

constexpr uint64_t kMs = 1'000'000;

const puone_trace_api& tracing() {
  const void* table = nullptr;
  OK(hal().get_extension(PUONE_TRACE_EXTENSION, PUONE_TRACE_VERSION, &table));
  return *static_cast<const puone_trace_api*>(table);
}

std::vector<puone_trace_record> stopped() {
  const puone_trace_record* records = nullptr;
  uint64_t count = 0;
  OK(tracing().stop(&records, &count));
  return {records, records + count};
}

} // namespace

TEST(a_trace_knows_how_long_work_lasts_that_occupies_no_thread) {
  Sim sim;
  const puone_stream stream = sim.stream();
  auto* byte = sim.memory<unsigned char>(1);
  OK(tracing().start());
  sim.delay(stream, 5 * kMs);
  OK(hal().memset_async(byte, 1, 1, stream));
  const auto records = stopped();
  CHECK_EQ(records.size(), 2u);
  CHECK(records[0].end_ns - records[0].begin_ns >= 5 * kMs);
  CHECK(records[1].begin_ns >= records[0].end_ns);
}

TEST(work_of_two_streams_overlaps_in_a_trace) {
  Sim sim;
  const puone_stream one = sim.stream();
  const puone_stream other = sim.stream();
  OK(tracing().start());
  sim.delay(one, 50 * kMs);
  sim.delay(other, 50 * kMs);
  const auto records = stopped();
  CHECK_EQ(records.size(), 2u);
  CHECK(records[1].begin_ns < records[0].end_ns);
  CHECK(records[0].begin_ns < records[1].end_ns);
}

TEST(a_trace_agrees_with_events) {
  Sim sim;
  const puone_stream stream = sim.stream();
  const puone_event begin = sim.event(PUONE_EVENT_TIMING);
  const puone_event end = sim.event(PUONE_EVENT_TIMING);
  OK(tracing().start());
  OK(hal().event_record(begin, stream));
  sim.delay(stream, 20 * kMs);
  OK(hal().event_record(end, stream));
  const auto records = stopped();
  float ms = 0;
  OK(hal().event_elapsed_ms(begin, end, &ms));
  const double traced = static_cast<double>(records.at(0).end_ns - records.at(0).begin_ns) * 1e-6;
  CHECK(traced <= ms);
  CHECK(traced >= 20);
}

TEST(skipped_work_is_in_no_trace) {
  Sim sim;
  const puone_stream stream = sim.stream();
  auto* byte = sim.memory<unsigned char>(1);
  OK(fault().kernel_error_at(1));
  OK(tracing().start());
  sim.delay(stream, 1000);
  OK(hal().memset_async(byte, 1, 1, stream));
  const auto records = stopped();
  CHECK_EQ(records.size(), 1u);
  STATUS(hal().stream_synchronize(stream), PUONE_INTERNAL);
}

TEST(a_lost_device_ends_the_trace) {
  Sim sim;
  const puone_stream stream = sim.stream();
  OK(tracing().start());
  sim.delay(stream, 1000 * kMs);
  OK(fault().device_lost(0));
  const puone_trace_record* records = nullptr;
  uint64_t count = 0;
  STATUS(tracing().stop(&records, &count), PUONE_DEVICE_LOST);
  OK(fault().reset());
  OK(tracing().start());
  CHECK_EQ(stopped().size(), 0u);
}

TEST(a_stream_destroyed_while_it_is_traced_has_its_record) {
  Sim sim;
  auto* byte = sim.memory<unsigned char>(1);
  puone_stream stream = nullptr;
  OK(hal().stream_create(0, 0, &stream));
  OK(tracing().start());
  OK(hal().memset_async(byte, 1, 1, stream));
  OK(hal().stream_destroy(stream));
  const auto records = stopped();
  CHECK_EQ(records.size(), 1u);
  CHECK(records[0].stream == stream);
}
