// SPDX-License-Identifier: BSD-3-Clause
// A correct program stays correct under the adversarial schedule; an incorrect one is found out.
#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "sim.h"

using namespace puone::test;

namespace {

constexpr int kStages = 5;
constexpr int kRounds = 6;

/// A ring of streams over two devices that pass a growing block on, ordered by events only.
unsigned char ringResult(Sim& sim, bool ordered) {
  std::vector<puone_stream> streams;
  std::vector<unsigned char*> blocks;
  for (int i = 0; i < kStages; ++i) {
    streams.push_back(sim.stream(i % 2, -(i % 3)));
    blocks.push_back(sim.memory<unsigned char>(512, i % 2));
    OK(hal().memset_async(blocks.back(), 0, 512, streams.back()));
  }
  for (const puone_stream stream : streams) OK(hal().stream_synchronize(stream));
  for (int round = 1; round <= kRounds; ++round) {
    for (int i = 0; i < kStages; ++i) {
      const int next = (i + 1) % kStages;
      const auto stage = static_cast<size_t>(i);
      if (i == 0) OK(hal().memset_async(blocks[0], round, 512, streams[0]));
      const puone_event event = sim.event(0, i % 2);
      OK(hal().event_record(event, streams[stage]));
      if (ordered) OK(hal().stream_wait_event(streams[static_cast<size_t>(next)], event));
      OK(hal().event_destroy(event));
      if (next != 0) {
        sim.move(
            blocks[static_cast<size_t>(next)],
            blocks[stage],
            512,
            streams[static_cast<size_t>(next)]);
      }
    }
  }
  const unsigned char result = sim.value(blocks.back() + 511, streams.back());
  OK(hal().device_synchronize(0));
  OK(hal().device_synchronize(1));
  return result;
}

constexpr int kTurns = 40;

/// What a stream reads of a byte that another one counts up, with a pause of the host after each
/// `pause`-th turn.
std::vector<unsigned char> raceResult(Sim& sim, int pause) {
  const puone_stream writer = sim.stream();
  const puone_stream reader = sim.stream();
  unsigned char* byte = sim.memory<unsigned char>(1);
  unsigned char* seen = sim.memory<unsigned char>(kTurns);
  OK(hal().memset_async(byte, 0, 1, writer));
  OK(hal().stream_synchronize(writer));
  for (int turn = 0; turn < kTurns; ++turn) {
    OK(hal().memset_async(byte, turn + 1, 1, writer));
    sim.move(seen + turn, byte, 1, reader);
    if (turn % pause == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  OK(hal().device_synchronize(0));
  std::vector<unsigned char> result;
  for (int turn = 0; turn < kTurns; ++turn) result.push_back(sim.value(seen + turn, reader));
  return result;
}

} // namespace

TEST(a_program_ordered_by_events_is_right_under_every_seed) {
  for (int seed = 0; seed < 8; ++seed) {
    Sim sim({{"PUONE_SIM_SEED", std::to_string(seed)}});
    CHECK_EQ(ringResult(sim, true), kRounds);
  }
}

#ifndef __SANITIZE_THREAD__ // it is a data race, and the thread sanitizer rightly reports it
TEST(a_program_that_forgets_its_events_goes_wrong_under_some_seed) {
  int wrong = 0;
  for (int seed = 0; seed < 20 && wrong == 0; ++seed) {
    Sim sim({{"PUONE_SIM_SEED", std::to_string(seed)}});
    if (ringResult(sim, false) != kRounds) ++wrong;
  }
  CHECK(wrong > 0);
}

TEST(a_seed_repeats_its_schedule_and_each_has_its_own) {
  std::vector<std::vector<unsigned char>> results;
  for (int seed = 0; seed < 6; ++seed) {
    for (const int pause : {kTurns, 7, 3}) {
      Sim sim({{"PUONE_SIM_SEED", std::to_string(seed)}});
      const auto result = raceResult(sim, pause);
      if (pause == kTurns) {
        results.push_back(result);
      } else {
        CHECK(result == results.back());
      }
    }
  }
  std::sort(results.begin(), results.end());
  CHECK(std::adjacent_find(results.begin(), results.end()) == results.end());
}
#endif

TEST(the_adversary_keeps_stream_order_and_reports_errors) {
  for (int seed = 0; seed < 4; ++seed) {
    Sim sim({{"PUONE_SIM_SEED", std::to_string(seed)}});
    const puone_stream stream = sim.stream();
    unsigned char* byte = sim.memory<unsigned char>(1);
    for (int i = 0; i < 50; ++i) OK(hal().memset_async(byte, i, 1, stream));
    CHECK_EQ(sim.value(byte, stream), 49);
    OK(fault().kernel_error_at(1));
    sim.delay(stream, 1000);
    STATUS(hal().stream_synchronize(stream), PUONE_INTERNAL);
  }
}

// Half of the answers take no step, the others one or more: a hundred are enough for ten steps, and
// take less time than the pause of a host after which the schedule goes on by itself.
TEST(asking_alone_moves_the_schedule_on) {
  for (const bool by_event : {false, true}) {
    int ready = 0;
    for (int seed = 0; seed < 8; ++seed) {
      Sim sim({{"PUONE_SIM_SEED", std::to_string(seed)}});
      const puone_stream stream = sim.stream();
      const puone_event event = sim.event();
      unsigned char* byte = sim.memory<unsigned char>(1);
      for (int i = 0; i < 10; ++i) OK(hal().memset_async(byte, i, 1, stream));
      OK(hal().event_record(event, stream));
      puone_status status = PUONE_NOT_READY;
      for (int asked = 0; asked < 100 && status == PUONE_NOT_READY; ++asked) {
        status = by_event ? hal().event_query(event) : hal().stream_query(stream);
      }
      if (status == PUONE_OK) ++ready;
      OK(hal().stream_synchronize(stream));
    }
    CHECK(ready >= 6);
  }
}
