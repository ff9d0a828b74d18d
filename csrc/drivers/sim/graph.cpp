// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/sim/graph.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "drivers/common/error.h"

namespace puone::sim {
namespace {

std::atomic<uint64_t> captures{0};

} // namespace

Capture::Capture(std::shared_ptr<Stream> origin)
    : id_(captures.fetch_add(1, std::memory_order_relaxed) + 1), graph_(std::make_unique<Graph>()) {
  join(std::move(origin));
}

Capture::~Capture() {
  for (const auto& stream : lanes_) stream->capture = nullptr;
}

void Capture::join(std::shared_ptr<Stream> stream) {
  stream->capture = this;
  stream->lane = lanes_.size();
  graph_->lanes.push_back({stream->device, stream->priority});
  lanes_.push_back(std::move(stream));
  clocks_.emplace_back();
}

Graph::Step& Capture::append(size_t lane, Work::Kind kind) {
  graph_->steps.push_back({lane, kind, nullptr});
  return graph_->steps.back();
}

/// One more call of the lane, which others have to wait for.
void Capture::advance(size_t lane) {
  clocks_[lane].resize(lanes_.size());
  ++clocks_[lane][lane];
}

void Capture::add(const Stream& stream, std::unique_ptr<const Work> work) {
  if (auto needed = work->needs()) graph_->needs.push_back(std::move(needed));
  append(stream.lane, work->kind).work = std::move(work);
  advance(stream.lane);
}

void Capture::record(const Stream& stream, Record& record) {
  record.capture = id_;
  record.sequence = graph_->records++;
  append(stream.lane, Work::Kind::kRecord).record = record.sequence;
  record_clocks_.push_back(clocks_[stream.lane]);
}

void Capture::wait(const std::shared_ptr<Stream>& stream, const Record& record) {
  if (stream->capture == nullptr) join(stream);
  append(stream->lane, Work::Kind::kWait).record = record.sequence;
  advance(stream->lane);
  Clock& clock = clocks_[stream->lane];
  const Clock& recorded = record_clocks_[record.sequence];
  for (size_t lane = 0; lane < recorded.size(); ++lane) {
    clock[lane] = std::max(clock[lane], recorded[lane]);
  }
}

std::unique_ptr<Graph> Capture::end() {
  Clock& origin = clocks_.front();
  origin.resize(lanes_.size());
  for (size_t lane = 1; lane < lanes_.size(); ++lane) {
    if (origin[lane] != clocks_[lane][lane]) {
      fail(
          PUONE_INVALID_ARGUMENT,
          "the stream that the capture began on must wait for the other captured streams: record "
          "an event on each of them, and let it wait for that event");
    }
  }
  return std::move(graph_);
}

} // namespace puone::sim
