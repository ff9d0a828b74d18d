// SPDX-License-Identifier: BSD-3-Clause
// How an error that a kernel raises is reported: which one, when, and once.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "check.h"
#include "drivers/cuda/device_errors.h"
#include "drivers/cuda/native_stream.h"
#include "drivers/cuda/status.h"
#include "standin.h"

using namespace puone::cuda;

namespace {

constexpr uint32_t kTickets = 1u << 20; // device_errors.h

/// What a launch of `kernel` does that has an error to raise, later or never.
puone::kernels::DeviceError launched(ErrorCell& cell, const std::string& kernel) {
  return {&cell.record(), cell.errors().code("kernel " + kernel, "index {} is not in [0, {})")};
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
    for (uint32_t i = 0; i < count; ++i) errors.draw();
  }
  DeviceErrors errors;
  StreamPool pool{errors};
};

} // namespace

TEST(an_error_is_reported_once_with_its_kernel_and_values) {
  Fixture f;
  NativeStream& stream = f.pool.take(0);
  const auto error = launched(stream.cell(), "gather");
  CHECK(reported(stream, f.errors.latest()) == "none");
  error.raise(7, 5);
  error.raise(8, 5);
  CHECK(reported(stream, f.errors.latest()) == "kernel gather: index 7 is not in [0, 5)");
  CHECK(reported(stream, f.errors.latest()) == "none");
  launched(stream.cell(), "scatter").raise(9, 2);
  CHECK(reported(stream, f.errors.latest()) == "kernel scatter: index 9 is not in [0, 2)");
}

TEST(the_oldest_of_a_devices_failures_is_told_first) {
  Fixture f;
  NativeStream& first = f.pool.take(0);
  NativeStream& second = f.pool.take(0);
  const auto older = launched(second.cell(), "older");
  const auto newer = launched(first.cell(), "newer");
  newer.raise(1, 1);
  older.raise(2, 2);
  CHECK(reported(f.pool, f.errors.latest()) == "kernel older: index 2 is not in [0, 2)");
  CHECK(reported(f.pool, f.errors.latest()) == "kernel newer: index 1 is not in [0, 1)");
}

TEST(what_was_launched_after_an_event_is_not_the_events) {
  Fixture f;
  NativeStream& stream = f.pool.take(0);
  launched(stream.cell(), "before");
  const Ticket event = f.errors.latest();
  launched(stream.cell(), "after").raise(3, 3);
  CHECK(reported(stream, event) == "none");
  CHECK(reported(stream, f.errors.latest()) == "kernel after: index 3 is not in [0, 3)");
}

TEST(tickets_that_begin_anew_keep_the_order) {
  Fixture f;
  f.drawTickets(kTickets - 2);
  NativeStream& first = f.pool.take(0);
  NativeStream& second = f.pool.take(0);
  const auto older = launched(first.cell(), "older"); // the last ticket of the round
  launched(second.cell(), "newer").raise(1, 1);       // ticket 0
  older.raise(2, 2);
  const Ticket event = f.errors.latest();
  CHECK_EQ(event % kTickets, 0u);
  CHECK(reported(f.pool, event) == "kernel older: index 2 is not in [0, 2)");
  CHECK(reported(f.pool, event) == "kernel newer: index 1 is not in [0, 1)");
}

TEST(a_failure_that_waits_for_long_is_told_all_the_same) {
  Fixture f;
  NativeStream& stream = f.pool.take(0);
  launched(stream.cell(), "old").raise(4, 4);
  f.drawTickets(kTickets / 4 * 3);
  CHECK(reported(stream, f.errors.latest()) == "kernel old: index 4 is not in [0, 4)");
}

TEST(a_graphs_error_is_reported_where_it_was_launched) {
  Fixture f;
  NativeStream& captured = f.pool.take(0);
  NativeStream& stream = f.pool.take(0);
  auto cell = std::make_shared<ErrorCell>(f.errors);
  const auto error = launched(*cell, "gather");
  const Ticket before = f.errors.latest();
  stream.watch(cell);
  error.raise(6, 6);
  CHECK(reported(captured, f.errors.latest()) == "none");
  CHECK(reported(stream, before) == "none");
  CHECK(reported(stream, f.errors.latest()) == "kernel gather: index 6 is not in [0, 6)");
}

TEST(a_graph_lives_until_its_last_launch_is_done) {
  Fixture f;
  NativeStream& stream = f.pool.take(0);
  auto cell = std::make_shared<ErrorCell>(f.errors);
  const std::weak_ptr<ErrorCell> watched = cell;
  stream.watch(cell);
  const Ticket first = f.errors.latest();
  stream.watch(cell);
  cell.reset();
  stream.release(first); // that of the first launch
  CHECK(!watched.expired());
  stream.release(f.errors.latest());
  CHECK(watched.expired());
}

TEST(a_failed_graph_is_kept_until_it_has_been_told) {
  Fixture f;
  NativeStream& stream = f.pool.take(0);
  auto cell = std::make_shared<ErrorCell>(f.errors);
  const std::weak_ptr<ErrorCell> watched = cell;
  launched(*cell, "gather").raise(1, 1);
  stream.watch(std::move(cell));
  stream.release(f.errors.latest());
  CHECK(reported(stream, f.errors.latest()) == "kernel gather: index 1 is not in [0, 1)");
  stream.release(f.errors.latest());
  CHECK(watched.expired());
}

TEST(a_destroyed_streams_failure_is_the_devices) {
  Fixture f;
  NativeStream& stream = f.pool.take(0);
  launched(stream.cell(), "gather").raise(1, 1);
  f.pool.give(stream);
  NativeStream& next = f.pool.take(0);
  CHECK(&next != &stream);
  CHECK(reported(f.pool, f.errors.latest()) == "kernel gather: index 1 is not in [0, 1)");
  f.pool.give(next);
  CHECK(&f.pool.take(0) == &stream);
}

TEST(records_are_used_again_and_empty_then) {
  Fixture f;
  puone::kernels::ErrorRecord* record = nullptr;
  {
    ErrorCell cell(f.errors);
    record = &cell.record();
    launched(cell, "gather").raise(1, 1);
  }
  ErrorCell cell(f.errors);
  CHECK(&cell.record() == record);
  CHECK(!cell.isRaised());
}
