// SPDX-License-Identifier: BSD-3-Clause
// How a fault that a kernel raises becomes an error: which one, when, and once.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "check.h"
#include "drivers/cuda/faults.h"
#include "drivers/cuda/native_stream.h"
#include "drivers/cuda/status.h"
#include "standin.h"

using namespace puone::cuda;

namespace {

constexpr uint32_t kTickets = 1u << 20; // faults.h

/// What a launch of `kernel` does that has a fault to raise, later or never.
puone::kernels::Fault launched(FaultCell& cell, const std::string& kernel) {
  return {&cell.record(), cell.faults().code("kernel " + kernel, "index {} is not in [0, {})")};
}

std::string textOf(const std::optional<Failure>& failure) {
  return failure ? failure->text : "none";
}

/// As a synchronisation does: reads and clears.
template <class Source>
std::string reported(const Source& source, Ticket until) {
  const std::optional<Failure> failure = source.failure(until);
  if (failure) *failure->record = {};
  return textOf(failure);
}

struct Fixture {
  Fixture() {
    standinReset();
  }
  void drawTickets(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) faults.draw();
  }
  Faults faults;
  StreamPool pool{faults};
};

} // namespace

TEST(a_fault_is_told_once_with_its_kernel_and_values) {
  Fixture f;
  NativeStream& stream = f.pool.take(0);
  const auto fault = launched(stream.cell(), "gather");
  CHECK(reported(stream, f.faults.latest()) == "none");
  fault.raise(7, 5);
  fault.raise(8, 5);
  CHECK(reported(stream, f.faults.latest()) == "kernel gather: index 7 is not in [0, 5)");
  CHECK(reported(stream, f.faults.latest()) == "none");
  launched(stream.cell(), "scatter").raise(9, 2);
  CHECK(reported(stream, f.faults.latest()) == "kernel scatter: index 9 is not in [0, 2)");
}

TEST(the_oldest_of_a_devices_failures_is_told_first) {
  Fixture f;
  NativeStream& first = f.pool.take(0);
  NativeStream& second = f.pool.take(0);
  const auto older = launched(second.cell(), "older");
  const auto newer = launched(first.cell(), "newer");
  newer.raise(1, 1);
  older.raise(2, 2);
  CHECK(reported(f.pool, f.faults.latest()) == "kernel older: index 2 is not in [0, 2)");
  CHECK(reported(f.pool, f.faults.latest()) == "kernel newer: index 1 is not in [0, 1)");
}

TEST(what_was_launched_after_an_event_is_not_the_events) {
  Fixture f;
  NativeStream& stream = f.pool.take(0);
  launched(stream.cell(), "before");
  const Ticket event = f.faults.latest();
  launched(stream.cell(), "after").raise(3, 3);
  CHECK(reported(stream, event) == "none");
  CHECK(reported(stream, f.faults.latest()) == "kernel after: index 3 is not in [0, 3)");
}

TEST(tickets_that_begin_anew_keep_the_order) {
  Fixture f;
  f.drawTickets(kTickets - 2);
  NativeStream& first = f.pool.take(0);
  NativeStream& second = f.pool.take(0);
  const auto older = launched(first.cell(), "older"); // the last ticket of the round
  launched(second.cell(), "newer").raise(1, 1);       // ticket 0
  older.raise(2, 2);
  const Ticket event = f.faults.latest();
  CHECK_EQ(event % kTickets, 0u);
  CHECK(reported(f.pool, event) == "kernel older: index 2 is not in [0, 2)");
  CHECK(reported(f.pool, event) == "kernel newer: index 1 is not in [0, 1)");
}

TEST(a_failure_that_waits_for_long_is_told_all_the_same) {
  Fixture f;
  NativeStream& stream = f.pool.take(0);
  launched(stream.cell(), "old").raise(4, 4);
  f.drawTickets(kTickets / 4 * 3);
  CHECK(reported(stream, f.faults.latest()) == "kernel old: index 4 is not in [0, 4)");
}

TEST(a_graphs_fault_is_told_where_it_was_launched) {
  Fixture f;
  NativeStream& captured = f.pool.take(0);
  NativeStream& stream = f.pool.take(0);
  auto cell = std::make_shared<FaultCell>(f.faults);
  const auto fault = launched(*cell, "gather");
  const Ticket before = f.faults.latest();
  stream.watch(cell);
  fault.raise(6, 6);
  CHECK(reported(captured, f.faults.latest()) == "none");
  CHECK(reported(stream, before) == "none");
  CHECK(reported(stream, f.faults.latest()) == "kernel gather: index 6 is not in [0, 6)");
}

TEST(a_graph_lives_until_its_last_launch_is_done) {
  Fixture f;
  NativeStream& stream = f.pool.take(0);
  auto cell = std::make_shared<FaultCell>(f.faults);
  const std::weak_ptr<FaultCell> watched = cell;
  stream.watch(cell);
  const Ticket first = f.faults.latest();
  stream.watch(cell);
  cell.reset();
  stream.release(first); // that of the first launch
  CHECK(!watched.expired());
  stream.release(f.faults.latest());
  CHECK(watched.expired());
}

TEST(a_failed_graph_is_kept_until_it_has_been_told) {
  Fixture f;
  NativeStream& stream = f.pool.take(0);
  auto cell = std::make_shared<FaultCell>(f.faults);
  const std::weak_ptr<FaultCell> watched = cell;
  launched(*cell, "gather").raise(1, 1);
  stream.watch(std::move(cell));
  stream.release(f.faults.latest());
  CHECK(reported(stream, f.faults.latest()) == "kernel gather: index 1 is not in [0, 1)");
  stream.release(f.faults.latest());
  CHECK(watched.expired());
}

TEST(a_destroyed_streams_failure_is_the_devices) {
  Fixture f;
  NativeStream& stream = f.pool.take(0);
  launched(stream.cell(), "gather").raise(1, 1);
  f.pool.give(stream);
  NativeStream& next = f.pool.take(0);
  CHECK(&next != &stream);
  CHECK(reported(f.pool, f.faults.latest()) == "kernel gather: index 1 is not in [0, 1)");
  f.pool.give(next);
  CHECK(&f.pool.take(0) == &stream);
}

TEST(records_are_used_again_and_empty_then) {
  Fixture f;
  puone::kernels::FaultRecord* record = nullptr;
  {
    FaultCell cell(f.faults);
    record = &cell.record();
    launched(cell, "gather").raise(1, 1);
  }
  FaultCell cell(f.faults);
  CHECK(&cell.record() == record);
  CHECK(!cell.isRaised());
}
