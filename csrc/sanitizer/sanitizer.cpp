// SPDX-License-Identifier: BSD-3-Clause
#include "sanitizer/sanitizer.h"

#include <c10/util/StringUtil.h>

#include <algorithm>
#include <utility>

#include "runtime/stream_lookup.h"

namespace puone::sanitizer {

Sanitizer& sanitizer() {
  static auto* instance = new Sanitizer(); // leaked: calls may come while the process exits
  return *instance;
}

// ---- lanes ----

Lane Sanitizer::laneOf(puone_stream stream) {
  const auto [found, is_new] = lane_of_.emplace(stream, static_cast<Lane>(lanes_.size()));
  if (is_new) {
    StreamLane lane{stream, "a stream of another library", -1, {}};
    if (const auto known = findStream(stream)) {
      lane.device = known->deviceIndex();
      const std::string which =
          known->id() == 0 ? "the default stream" : c10::str("stream ", known->id());
      lane.name = c10::str(which, " of puone:", lane.device);
    }
    lanes_.push_back(std::move(lane));
  }
  return found->second;
}

Moment Sanitizer::next(Lane lane) {
  Clock& clock = clockOf(lane);
  if (lane != kHost) clock.join(clockOf(kHost)); // it is queued after what the host has done
  const uint64_t time = clock.tick(lane);
  return {lane, time, clock};
}

// ---- work ----

void Sanitizer::queued(puone_stream stream, Piece piece) {
  piece.operands.finish();
  const std::lock_guard guard(mutex_);
  if (Graph* graph = capturing(stream)) {
    graph->steps.push_back({laneIn(*graph, stream), std::move(piece)});
  } else {
    perform(next(laneOf(stream)), piece);
  }
}

Moment Sanitizer::hostFunctionQueued(puone_stream stream) {
  const std::lock_guard guard(mutex_);
  return next(laneOf(stream));
}

void Sanitizer::hostAccess(const Piece& piece, const Moment* moment) {
  const std::lock_guard guard(mutex_);
  perform(moment != nullptr ? *moment : next(kHost), piece);
}

void Sanitizer::perform(const Moment& moment, const Piece& piece) {
  const auto& operands = piece.operands.all;
  auto work = std::make_shared<Work>();
  work->lane = moment.lane;
  work->time = moment.time;
  work->clock = moment.clock;
  work->site = piece.site;
  work->what = piece.what;
  for (const Operand& operand : operands) {
    const Range bounds = operand.bounds();
    work->arguments.push_back(
        {operand.name, operand.flags, bounds, operand.units(), allocationAt(bounds.begin)});
  }
  bool moves_nothing = false;
  if (piece.copies) moves_nothing = shadow_.isUninitialized(operands[1]);
  // What a piece of work reads is there before it writes.
  for (const bool writes : {false, true}) {
    for (uint32_t i = 0; i < operands.size(); ++i) {
      if (operands[i].flags.writes == writes) {
        keep(shadow_.access({work, i}, operands[i], piece.copies));
      }
    }
  }
  if (!piece.copies) return;
  const Range to = operands[0].bounds();
  const Range from = operands[1].bounds();
  if (moves_nothing) {
    shadow_.setUninitialized(operands[0]);
  } else if (
      operands[0].count() == 1 && operands[1].count() == 1 &&
      to.end - to.begin == from.end - from.begin) {
    shadow_.copyState(to.begin, from.begin, to.end - to.begin);
  }
}

// ---- order ----

void Sanitizer::recorded(puone_event event, puone_stream stream) {
  const std::lock_guard guard(mutex_);
  captured_events_.erase(event);
  if (Graph* graph = capturing(stream)) {
    graph->steps.push_back({laneIn(*graph, stream), Record{graph->records}});
    captured_events_[event] = {captures_.at(stream), graph->records++};
    return;
  }
  Clock& clock = clockOf(laneOf(stream));
  clock.join(clockOf(kHost));
  events_[event] = clock;
}

void Sanitizer::waits(puone_stream stream, puone_event event) {
  const std::lock_guard guard(mutex_);
  const auto captured = captured_events_.find(event);
  if (captured != captured_events_.end()) {
    const auto& [graph, number] = captured->second;
    captures_[stream] = graph;
    graph->steps.push_back({laneIn(*graph, stream), Wait{number}});
    return;
  }
  const auto found = events_.find(event);
  if (found == events_.end()) return; // recorded before the sanitizer was on, and over since
  Clock& clock = clockOf(laneOf(stream));
  clock.join(clockOf(kHost));
  clock.join(found->second);
}

void Sanitizer::hostWaitsForStream(puone_stream stream) {
  const std::lock_guard guard(mutex_);
  clockOf(kHost).join(clockOf(laneOf(stream)));
}

void Sanitizer::hostWaitsForEvent(puone_event event) {
  const std::lock_guard guard(mutex_);
  const auto found = events_.find(event);
  if (found != events_.end()) clockOf(kHost).join(found->second);
}

void Sanitizer::hostWaitsForDevice(int32_t device) {
  const std::lock_guard guard(mutex_);
  Clock& host = clockOf(kHost);
  for (const StreamLane& lane : lanes_) {
    if (device < 0 || lane.device < 0 || lane.device == device) host.join(lane.clock);
  }
}

void Sanitizer::destroyed(puone_event event) {
  const std::lock_guard guard(mutex_);
  events_.erase(event);
  captured_events_.erase(event);
}

void Sanitizer::destroyed(puone_stream stream) {
  const std::lock_guard guard(mutex_);
  lane_of_.erase(stream);
}

void Sanitizer::neverRecorded(const std::string& waiting, SitePtr site) {
  const std::lock_guard guard(mutex_);
  Finding finding{};
  finding.kind = Kind::NeverRecorded;
  finding.waiting = waiting;
  finding.site = std::move(site);
  add(std::move(finding));
}

// ---- memory ----

void Sanitizer::allocated(Range bytes, SitePtr site) {
  const std::lock_guard guard(mutex_);
  shadow_.allocate(bytes);
  auto next = allocations_.lower_bound(bytes.begin);
  if (next != allocations_.begin() && std::prev(next)->second.end > bytes.begin) --next;
  while (next != allocations_.end() && next->first < bytes.end) next = allocations_.erase(next);
  allocations_[bytes.begin] = {bytes.end, ++allocation_count_, std::move(site)};
}

void Sanitizer::pinned(Range bytes) {
  const std::lock_guard guard(mutex_);
  pinned_[bytes.begin] = bytes.end;
  has_pinned_.store(true, std::memory_order_relaxed);
}

void Sanitizer::released(Range bytes) {
  const std::lock_guard guard(mutex_);
  shadow_.forget(bytes);
  pinned_.erase(bytes.begin);
  has_pinned_.store(!pinned_.empty(), std::memory_order_relaxed);
  auto next = allocations_.lower_bound(bytes.begin);
  while (next != allocations_.end() && next->first < bytes.end) next = allocations_.erase(next);
}

bool Sanitizer::isPinned(Range bytes) const {
  const std::lock_guard guard(mutex_);
  const auto after = pinned_.upper_bound(bytes.begin);
  return after != pinned_.begin() && std::prev(after)->second >= bytes.end;
}

uint64_t Sanitizer::allocationAt(uintptr_t address) const {
  const auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return 0;
  const Allocation& allocation = std::prev(after)->second;
  return address < allocation.end ? allocation.number : 0;
}

// ---- graphs ----

Sanitizer::Graph* Sanitizer::capturing(puone_stream stream) {
  const auto found = captures_.find(stream);
  return found == captures_.end() ? nullptr : found->second.get();
}

size_t Sanitizer::laneIn(Graph& graph, puone_stream stream) {
  auto& streams = graph.streams;
  const auto found = std::find(streams.begin(), streams.end(), stream);
  if (found != streams.end()) return static_cast<size_t>(found - streams.begin());
  streams.push_back(stream);
  return streams.size() - 1;
}

void Sanitizer::captureBegins(puone_stream stream) {
  const std::lock_guard guard(mutex_);
  auto graph = std::make_shared<Graph>();
  graph->streams.push_back(stream);
  captures_[stream] = std::move(graph);
}

void Sanitizer::captureEnds(puone_stream stream, puone_graph graph) {
  const std::lock_guard guard(mutex_);
  const auto found = captures_.find(stream);
  if (found == captures_.end()) return;
  const auto captured = found->second;
  std::erase_if(captures_, [&](const auto& entry) { return entry.second == captured; });
  std::erase_if(
      captured_events_, [&](const auto& entry) { return entry.second.graph == captured; });
  if (graph != nullptr) graphs_[graph] = captured;
}

// A lane of the same stream in a graph that is gone serves again where this launch is ordered
// behind all that was in it. Its times go on.
Lane Sanitizer::laneInGraph(const StreamLane& captured, const Clock& start) {
  const std::string name = captured.name + ", in a graph";
  const auto idle = std::find_if(idle_lanes_.begin(), idle_lanes_.end(), [&](Lane lane) {
    return lanes_[lane].name == name && start.at(lane) >= lanes_[lane].clock.at(lane);
  });
  if (idle == idle_lanes_.end()) {
    lanes_.push_back({nullptr, name, captured.device, {}});
    return static_cast<Lane>(lanes_.size() - 1);
  }
  const Lane lane = *idle;
  idle_lanes_.erase(idle);
  return lane;
}

Sanitizer::Launch Sanitizer::launched(puone_graph handle, puone_stream stream) {
  const std::lock_guard guard(mutex_);
  const auto found = graphs_.find(handle);
  if (found == graphs_.end()) {
    return unknown_graphs_.insert(handle).second ? Launch::FirstUnknown : Launch::Unknown;
  }
  Graph& graph = *found->second;
  const Lane origin = laneOf(stream);
  clockOf(origin).join(clockOf(kHost));
  clockOf(origin).join(graph.last); // launches of one graph run one after the other
  const Clock start = clockOf(origin);
  if (graph.lanes.empty()) graph.lanes.push_back(origin);
  while (graph.lanes.size() < graph.streams.size()) {
    const StreamLane captured = lanes_[laneOf(graph.streams[graph.lanes.size()])];
    graph.lanes.push_back(laneInGraph(captured, start));
  }
  std::vector<Lane> lanes = graph.lanes;
  lanes[0] = origin;
  for (const Lane lane : lanes) clockOf(lane).join(start);
  std::vector<Clock> records(graph.records);
  for (const Step& step : graph.steps) {
    const Lane lane = lanes[step.lane];
    if (const auto* piece = std::get_if<Piece>(&step.action)) {
      perform(next(lane), *piece);
    } else if (const auto* record = std::get_if<Record>(&step.action)) {
      records[record->number] = clockOf(lane);
    } else {
      clockOf(lane).join(records[std::get<Wait>(step.action).number]);
    }
  }
  for (const Lane lane : lanes) clockOf(origin).join(clockOf(lane));
  graph.last = clockOf(origin);
  return Launch::Followed;
}

void Sanitizer::destroyed(puone_graph graph) {
  const std::lock_guard guard(mutex_);
  unknown_graphs_.erase(graph);
  const auto found = graphs_.find(graph);
  if (found == graphs_.end()) return;
  const auto& lanes = found->second->lanes;
  if (!lanes.empty()) idle_lanes_.insert(idle_lanes_.end(), lanes.begin() + 1, lanes.end());
  graphs_.erase(found);
}

void Sanitizer::reset() {
  const std::lock_guard guard(mutex_);
  lanes_.resize(1);
  lanes_[kHost].clock = Clock();
  lane_of_.clear();
  events_.clear();
  shadow_.clear();
  allocations_.clear();
  pinned_.clear();
  has_pinned_.store(false);
  captures_.clear();
  captured_events_.clear();
  graphs_.clear();
  unknown_graphs_.clear();
  idle_lanes_.clear();
}

// ---- findings ----

void Sanitizer::keep(const Findings& found) {
  if (found.conflict) {
    const Access& first = found.conflict->first;
    const Access& then = found.conflict->then;
    Finding finding{};
    const bool host = first.work->lane == kHost || then.work->lane == kHost;
    const bool reused = first.to().allocation != then.to().allocation;
    finding.kind = host ? Kind::HostRace : reused ? Kind::Reuse : Kind::Race;
    finding.accesses = {first, then};
    finding.bytes = found.conflict->bytes;
    add(std::move(finding));
  }
  if (found.uninitialized) {
    Finding finding{};
    finding.kind = Kind::Uninitialized;
    finding.accesses = {found.uninitialized->read};
    finding.bytes = found.uninitialized->bytes;
    add(std::move(finding));
  }
}

void Sanitizer::add(Finding finding) {
  if (findings_.size() >= kMaxFindings) return;
  for (const Access& access : finding.accesses) {
    finding.streams.push_back(lanes_[access.work->lane].name);
  }
  const auto after = allocations_.upper_bound(finding.bytes.begin);
  if (after != allocations_.begin() && finding.bytes.begin < std::prev(after)->second.end) {
    const auto& [begin, allocation] = *std::prev(after);
    finding.block = {begin, allocation.end};
    finding.allocation = allocation.site;
  }
  findings_.push_back(std::move(finding));
  has_findings_.store(true, std::memory_order_relaxed);
}

namespace {

const char* modeOf(const Flags& flags) {
  if (flags.reads && flags.writes) return "read and write";
  return flags.writes ? "write" : "read";
}

ReportedAccess describe(const SitePtr& site) {
  ReportedAccess result;
  if (site == nullptr) return result;
  result.operation = site->name;
  result.backward = site->backward;
  result.frames = pythonFrames(site->stack);
  result.stack = formatPythonStack(site->stack);
  return result;
}

std::string adviceFor(Kind kind, const std::vector<ReportedAccess>& accesses) {
  switch (kind) {
    case Kind::Race:
      return c10::str(
          accesses[1].stream,
          " must wait for ",
          accesses[0].stream,
          " between the two: wait_stream(), or an event that is recorded behind the first access "
          "and that wait_event() waits for before the second");
    case Kind::Reuse:
      return c10::str(
          "record_stream() of the freed tensor for ",
          accesses[0].stream,
          " before it is freed, or a wait of ",
          accesses[1].stream,
          " for that stream before the memory is used again");
    case Kind::HostRace:
      return c10::str(
          "the host must wait for ",
          accesses[0].stream,
          " between the two: synchronize() of the stream, or of an event that is recorded behind "
          "the first access");
    case Kind::Uninitialized:
      return "a write of the memory before this";
    case Kind::NeverRecorded:
      return "a record of the event before the wait";
  }
  return "";
}

} // namespace

Report Sanitizer::report(const Finding& finding) const {
  Report result{finding.kind, {}, {}, "", ""};
  for (size_t i = 0; i < finding.accesses.size(); ++i) {
    const Access& access = finding.accesses[i];
    ReportedAccess said = describe(access.work->site);
    said.mode = modeOf(access.to().flags);
    said.argument = access.to().name;
    said.work = access.work->what;
    said.stream = finding.streams[i];
    result.accesses.push_back(std::move(said));
  }
  if (finding.kind == Kind::NeverRecorded) {
    ReportedAccess said = describe(finding.site);
    said.mode = "wait";
    said.stream = finding.waiting;
    result.accesses.push_back(std::move(said));
  }
  result.memory.address = finding.bytes.begin;
  result.memory.bytes = finding.bytes.end - finding.bytes.begin;
  result.memory.allocated = finding.block.end - finding.block.begin;
  const ReportedAccess allocation = describe(finding.allocation);
  result.memory.operation = allocation.operation;
  result.memory.stack = allocation.stack;
  result.advice = adviceFor(finding.kind, result.accesses);
  result.text = textOf(result);
  return result;
}

std::vector<Report> Sanitizer::takeReports() {
  std::vector<Finding> findings;
  {
    const std::lock_guard guard(mutex_);
    findings = std::exchange(findings_, {});
    has_findings_.store(false, std::memory_order_relaxed);
  }
  std::vector<Report> reports;
  for (const Finding& finding : findings) reports.push_back(report(finding));
  return reports;
}

} // namespace puone::sanitizer
