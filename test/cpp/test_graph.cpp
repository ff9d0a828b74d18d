// SPDX-License-Identifier: BSD-3-Clause
// Launches of graphs: what they leave open, and where their errors arrive.
#include <string>
#include <vector>

#include "sim.h"

using namespace puone::test;

namespace {

const puone_graph_api& graphs() {
  const void* table = nullptr;
  OK(hal().get_extension(PUONE_GRAPH_EXTENSION, PUONE_GRAPH_VERSION, &table));
  return *static_cast<const puone_graph_api*>(table);
}

puone_graph ended(puone_stream stream) {
  puone_graph graph = nullptr;
  OK(graphs().capture_end(stream, &graph));
  OK(graphs().instantiate(graph));
  return graph;
}

/// Lets `later` wait for all that is queued on `earlier`.
void order(Sim& sim, puone_stream earlier, puone_stream later) {
  const puone_event event = sim.event();
  OK(hal().event_record(event, earlier));
  OK(hal().stream_wait_event(later, event));
  OK(hal().event_destroy(event));
}

/// A graph of two streams, each of which fills its own byte; then the first one copies the byte of
/// the second, after it if `ordered`.
puone_graph forked(Sim& sim, unsigned char* bytes, bool ordered) {
  const puone_stream stream = sim.stream();
  const puone_stream side = sim.stream();
  OK(graphs().capture_begin(stream));
  order(sim, stream, side);
  OK(hal().memset_async(bytes + 1, 7, 1, side));
  if (ordered) order(sim, side, stream);
  sim.move(bytes, bytes + 1, 1, stream);
  order(sim, side, stream);
  return ended(stream);
}

int wrongLaunches(bool ordered) {
  int wrong = 0;
  for (int seed = 0; seed < 8; ++seed) {
    Sim sim({{"PUONE_SIM_SEED", std::to_string(seed)}});
    const puone_stream stream = sim.stream();
    auto* bytes = sim.memory<unsigned char>(2);
    const puone_graph graph = forked(sim, bytes, ordered);
    for (int launch = 0; launch < 10; ++launch) {
      OK(hal().memset_async(bytes, 0, 2, stream));
      OK(graphs().launch(graph, stream));
      wrong += sim.value(bytes, stream) != 7;
    }
    OK(graphs().destroy(graph));
  }
  return wrong;
}

/// A graph whose kernel is on a stream that joined the capture.
puone_graph kernelOnTheSide(Sim& sim) {
  const puone_stream stream = sim.stream();
  const puone_stream side = sim.stream();
  OK(graphs().capture_begin(stream));
  order(sim, stream, side);
  sim.delay(side, 1000);
  order(sim, side, stream);
  return ended(stream);
}

} // namespace

TEST(a_graph_ordered_by_events_is_right_under_every_seed) {
  CHECK_EQ(wrongLaunches(true), 0);
}

#ifndef __SANITIZE_THREAD__ // it is a data race, and the thread sanitizer rightly reports it
TEST(the_adversary_reorders_inside_of_a_launch_what_events_leave_open) {
  CHECK(wrongLaunches(false) > 0);
}
#endif

TEST(a_fault_armed_during_a_capture_fires_at_the_launch) {
  Sim sim;
  const puone_stream stream = sim.stream();
  OK(graphs().capture_begin(stream));
  OK(fault().kernel_error_at(2));
  sim.delay(stream, 1000);
  sim.delay(stream, 1000);
  const puone_graph graph = ended(stream);
  OK(graphs().launch(graph, stream));
  STATUS(hal().stream_synchronize(stream), PUONE_INTERNAL);
  CHECK(errorSays("kernel delay failed"));
  OK(graphs().launch(graph, stream));
  OK(hal().stream_synchronize(stream));
  OK(graphs().destroy(graph));
}

TEST(an_error_on_a_side_of_a_graph_arrives_once_where_it_was_launched) {
  Sim sim;
  const puone_stream stream = sim.stream();
  auto* byte = sim.memory<unsigned char>(1);
  OK(hal().memset_async(byte, 1, 1, stream));
  const puone_graph graph = kernelOnTheSide(sim);
  OK(fault().kernel_error_at(1));
  OK(graphs().launch(graph, stream));
  OK(hal().memset_async(byte, 2, 1, stream));
  STATUS(hal().stream_synchronize(stream), PUONE_INTERNAL);
  OK(hal().device_synchronize(0));
  CHECK_EQ(sim.value(byte, stream), 1); // skipped behind the error
  OK(graphs().launch(graph, stream));
  OK(hal().stream_synchronize(stream));
  OK(graphs().destroy(graph));
}

TEST(two_errors_of_one_launch_are_one) {
  Sim sim;
  const puone_stream stream = sim.stream();
  const puone_stream side = sim.stream();
  OK(graphs().capture_begin(stream));
  order(sim, stream, side);
  sim.delay(side, 1000);
  sim.delay(stream, 1000);
  order(sim, side, stream);
  const puone_graph graph = ended(stream);
  OK(fault().kernel_error_at(1));
  OK(graphs().launch(graph, stream));
  OK(fault().kernel_error_at(1));
  OK(graphs().launch(graph, stream));
  STATUS(hal().stream_synchronize(stream), PUONE_INTERNAL);
  OK(hal().stream_synchronize(stream));
  OK(hal().device_synchronize(0));
  OK(graphs().destroy(graph));
}

TEST(a_lost_device_ends_a_capture_and_its_launches) {
  Sim sim;
  const puone_stream stream = sim.stream();
  OK(graphs().capture_begin(stream));
  sim.delay(stream, 1000);
  const puone_graph graph = ended(stream);
  OK(graphs().capture_begin(stream));
  OK(fault().device_lost(0));
  puone_graph none = nullptr;
  STATUS(graphs().capture_end(stream, &none), PUONE_DEVICE_LOST);
  STATUS(graphs().launch(graph, stream), PUONE_DEVICE_LOST);
  OK(fault().reset());
  OK(graphs().launch(graph, stream));
  OK(hal().stream_synchronize(stream));
  OK(graphs().destroy(graph));
}

TEST(events_of_another_time_are_refused_in_a_capture) {
  Sim sim;
  const puone_stream stream = sim.stream();
  const puone_stream other = sim.stream();
  const puone_event outside = sim.event();
  const puone_event inside = sim.event();
  OK(hal().event_record(outside, other));
  OK(graphs().capture_begin(stream));
  STATUS(hal().stream_wait_event(stream, outside), PUONE_INVALID_ARGUMENT);
  OK(hal().stream_wait_event(stream, sim.event())); // never recorded
  OK(hal().event_record(inside, stream));
  OK(graphs().destroy(ended(stream)));
  STATUS(hal().stream_wait_event(other, inside), PUONE_INVALID_ARGUMENT);
  STATUS(hal().event_query(inside), PUONE_INVALID_ARGUMENT);
  OK(hal().event_record(inside, other));
  OK(hal().event_synchronize(inside));
}
