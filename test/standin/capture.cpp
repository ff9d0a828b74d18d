// SPDX-License-Identifier: BSD-3-Clause
// Stream capture, and the order in which a graph's work runs.
#include <algorithm>

#include "runtime.h"

namespace puone::standin {

void Runtime::beginCapture(const std::shared_ptr<Stream>& stream, cudaStreamCaptureMode mode) {
  if (stream->capture != nullptr) refuse(cudaErrorIllegalState);
  auto capture = std::make_shared<Capture>();
  capture->origin = stream.get();
  capture->mode = mode;
  capture->owner = std::this_thread::get_id();
  capture->id = ++captured_;
  capture->streams.insert(stream.get());
  stream->capture = capture;
  stream->frontier.clear();
  captures_.push_back(std::move(capture));
}

/// A stream joins a capture by waiting for an event that was recorded in it.
void Runtime::joinCapture(const std::shared_ptr<Stream>& stream, const Event& event) {
  const auto spoil = [](Capture& capture, cudaError_t error) {
    capture.invalid = true;
    refuse(error);
  };
  if (event.capture == nullptr) spoil(*stream->capture, cudaErrorStreamCaptureIsolation);
  Capture& capture = *event.capture;
  if (std::ranges::find(captures_, event.capture) == captures_.end()) {
    refuse(cudaErrorCapturedEvent); // the capture has ended
  }
  if (stream->capture == nullptr) {
    stream->capture = event.capture;
    stream->frontier.clear();
    capture.streams.insert(stream.get());
  } else if (stream->capture != event.capture) {
    stream->capture->invalid = true;
    spoil(capture, cudaErrorStreamCaptureMerge);
  }
  for (const size_t node : event.frontier) {
    if (std::ranges::count(stream->frontier, node) == 0) stream->frontier.push_back(node);
  }
}

namespace {

/// Whether all of the work comes before the last pieces of the origin.
bool joined(const Capture& capture) {
  const std::vector<Graph::Node>& nodes = capture.graph->nodes;
  std::vector<bool> covered(nodes.size(), false);
  std::vector<size_t> open = capture.origin->frontier;
  while (!open.empty()) {
    const size_t node = open.back();
    open.pop_back();
    if (covered[node]) continue;
    covered[node] = true;
    open.insert(open.end(), nodes[node].after.begin(), nodes[node].after.end());
  }
  return std::ranges::all_of(capture.streams, [&](const Stream* stream) {
    return std::ranges::all_of(stream->frontier, [&](size_t node) { return covered[node]; });
  });
}

} // namespace

std::shared_ptr<Graph> Runtime::endCapture(const std::shared_ptr<Stream>& stream) {
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture == nullptr) refuse(cudaErrorIllegalState);
  if (capture->origin != stream.get()) refuse(cudaErrorStreamCaptureUnmatched);
  const bool owned = capture->owner == std::this_thread::get_id();
  if (!owned && capture->mode != cudaStreamCaptureModeRelaxed) {
    refuse(cudaErrorStreamCaptureWrongThread);
  }
  const bool whole = joined(*capture);
  leaveCapture(*capture);
  if (whole && !capture->invalid) return capture->graph;
  drop(*capture->graph);
  refuse(whole ? cudaErrorStreamCaptureInvalidated : cudaErrorStreamCaptureUnjoined);
}

void Runtime::drop(Graph& graph) {
  for (const std::shared_ptr<void*>& block : graph.blocks) {
    if (block.use_count() == 1) memory.giveBack(*block);
  }
  graph.blocks.clear();
}

void Runtime::abandonCapture(Stream& stream) {
  const std::shared_ptr<Capture> capture = stream.capture;
  if (capture == nullptr) return;
  capture->invalid = true;
  if (capture->origin == &stream) {
    leaveCapture(*capture);
    drop(*capture->graph);
  } else {
    capture->streams.erase(&stream);
  }
}

void Runtime::leaveCapture(Capture& capture) {
  const std::shared_ptr<Capture> keep = capture.origin->capture;
  for (Stream* stream : capture.streams) {
    stream->capture = nullptr;
    stream->frontier.clear();
  }
  std::erase(captures_, keep);
}

void Runtime::refuseCaptured(const Stream& stream) {
  if (stream.capture == nullptr) return;
  stream.capture->invalid = true;
  refuse(cudaErrorStreamCaptureUnsupported);
}

void Runtime::refuseCaptured(const Event& event) {
  if (event.capture == nullptr) return;
  event.capture->invalid = true;
  refuse(cudaErrorCapturedEvent);
}

void Runtime::refuseUnsafe() {
  if (calling.capture_mode == cudaStreamCaptureModeRelaxed) return;
  for (const auto& capture : captures_) {
    const bool own = capture->owner == std::this_thread::get_id();
    const bool global = capture->mode == cudaStreamCaptureModeGlobal &&
                        calling.capture_mode == cudaStreamCaptureModeGlobal;
    if (global || (own && capture->mode != cudaStreamCaptureModeRelaxed)) {
      capture->invalid = true;
      refuse(cudaErrorStreamCaptureUnsupported);
    }
  }
}

/// Queues the graph's work in an order that its edges permit: as captured, or, for the adversary,
/// any.
void Runtime::launch(const std::shared_ptr<Stream>& stream, const Graph& graph) {
  std::vector<size_t> left(graph.nodes.size());
  for (size_t i = 0; i < left.size(); ++i) left[i] = i;
  std::vector<bool> done(left.size(), false);
  while (!left.empty()) {
    std::vector<size_t> ready; // places in `left`
    for (size_t i = 0; i < left.size(); ++i) {
      const auto& after = graph.nodes[left[i]].after;
      if (std::ranges::all_of(after, [&](size_t node) { return done[node]; })) ready.push_back(i);
      if (!options.adversarial && !ready.empty()) break;
    }
    const size_t place = ready[options.adversarial ? random() % ready.size() : 0];
    submit(stream, graph.nodes[left[place]].work);
    done[left[place]] = true;
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(place));
  }
}

} // namespace puone::standin
