// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/cuda/graph.h"

#include <algorithm>
#include <utility>

#include "drivers/common/error.h"
#include "drivers/cuda/status.h"

namespace puone::cuda {
namespace {

struct CaptureInfo {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
};

CaptureInfo infoOf(cudaStream_t stream) {
  CaptureInfo info;
  check("cudaStreamGetCaptureInfo", cudaStreamGetCaptureInfo(stream, &info.status, &info.id));
  return info;
}

} // namespace

Graph::~Graph() {
  if (executable != nullptr) note("cudaGraphExecDestroy", cudaGraphExecDestroy(executable));
  if (graph != nullptr) note("cudaGraphDestroy", cudaGraphDestroy(graph));
}

HostCall& Graph::keep(std::unique_ptr<HostCall> call) {
  const std::lock_guard guard(mutex);
  calls.push_back(std::move(call));
  return *calls.back();
}

void Graph::keep(std::shared_ptr<const void> module) {
  const std::lock_guard guard(mutex);
  modules.push_back(std::move(module));
}

void Graph::dropModules() {
  const std::lock_guard guard(mutex);
  modules.clear();
}

void Captures::begin(cudaStream_t stream, int32_t device, DeviceErrors& errors) {
  auto graph = std::make_shared<Graph>(device, errors);
  const std::lock_guard guard(mutex_);
  if (infoOf(stream).status != cudaStreamCaptureStatusNone) {
    fail(PUONE_INVALID_ARGUMENT, "the stream is being captured already");
  }
  check("cudaStreamBeginCapture", cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  captures_[infoOf(stream).id] = {stream, std::move(graph)};
  active_.store(static_cast<int32_t>(captures_.size()), std::memory_order_relaxed);
}

std::shared_ptr<Graph> Captures::end(cudaStream_t stream) {
  const std::lock_guard guard(mutex_);
  const auto capture = std::find_if(
      captures_.begin(), captures_.end(), [=](const auto& c) { return c.second.origin == stream; });
  if (capture == captures_.end()) {
    fail(PUONE_INVALID_ARGUMENT, "no capture has begun on the stream");
  }
  std::shared_ptr<Graph> graph = std::move(capture->second.graph);
  captures_.erase(capture);
  active_.store(static_cast<int32_t>(captures_.size()), std::memory_order_relaxed);
  check("cudaStreamEndCapture", cudaStreamEndCapture(stream, &graph->graph));
  return graph;
}

Graph* Captures::find(cudaStream_t stream) {
  const CaptureInfo info = infoOf(stream);
  if (info.status == cudaStreamCaptureStatusNone) return nullptr;
  const std::lock_guard guard(mutex_);
  const auto capture = captures_.find(info.id);
  const bool broken = info.status == cudaStreamCaptureStatusInvalidated;
  if (broken || capture == captures_.end()) {
    fail(PUONE_INVALID_ARGUMENT, "the capture that the stream is part of has failed");
  }
  return capture->second.graph.get();
}

bool Captures::isPart(cudaStream_t stream) {
  return infoOf(stream).status != cudaStreamCaptureStatusNone;
}

void Captures::refuse(cudaStream_t stream, const char* what) {
  if (of(stream) != nullptr) {
    fail(PUONE_INVALID_ARGUMENT, "%s is not possible while the stream is being captured", what);
  }
}

} // namespace puone::cuda
