// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/sim/trace.h"

#include <utility>

#include "drivers/common/correlation.h"
#include "drivers/common/error.h"

namespace puone::sim {

void Tracer::start() {
  if (state_ != State::kOff) fail(PUONE_INVALID_ARGUMENT, "tracing is on already");
  state_ = State::kOn;
  records_.clear();
}

puone_trace_record* Tracer::append(
    puone_stream handle, const std::shared_ptr<Stream>& stream, const Work::Description& work) {
  traced_.push_back(
      {.name = work.name,
       .stream = handle,
       .begin_ns = 0,
       .end_ns = 0,
       .bytes = work.bytes,
       .correlation = Correlation::next(),
       .kind = static_cast<int32_t>(work.kind),
       .device = stream->device});
  last_[stream] = stream->submitted + 1;
  return &traced_.back();
}

void Tracer::add(puone_stream handle, const std::shared_ptr<Stream>& stream, Work& work) {
  work.traced = append(handle, stream, work.description());
}

void Tracer::addGraph(
    puone_stream handle,
    const std::shared_ptr<Stream>& stream,
    std::shared_ptr<Record> begin,
    std::shared_ptr<Record> end) {
  puone_trace_record* record = append(handle, stream, {PUONE_TRACE_GRAPH, "graph.launch", 0});
  last_[stream] = end->sequence;
  launches_.push_back({record, std::move(begin), std::move(end)});
}

const std::vector<puone_trace_record>& Tracer::stop(Scheduler& scheduler, Scheduler::Lock& lock) {
  if (state_ != State::kOn) fail(PUONE_INVALID_ARGUMENT, "tracing is off");
  state_ = State::kStopping;
  const auto last = std::exchange(last_, {});
  for (const auto& [stream, sequence] : last) scheduler.wait(lock, stream, sequence, true);
  for (const Launch& launch : std::exchange(launches_, {})) {
    launch.record->begin_ns = launch.begin->time_ns;
    launch.record->end_ns = launch.end->time_ns;
  }
  // Work that was skipped, because other work had failed, has no times.
  for (const puone_trace_record& record : std::exchange(traced_, {})) {
    if (record.end_ns != 0) records_.push_back(record);
  }
  state_ = State::kOff;
  for (const auto& entry : last) scheduler.checkAlive(entry.first->device);
  return records_;
}

} // namespace puone::sim
