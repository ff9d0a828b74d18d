// SPDX-License-Identifier: BSD-3-Clause
// CUDA's functions about streams, events and graphs.
#include <algorithm>
#include <cstddef>
#include <utility>

#include "runtime.h"

using namespace puone::standin;

namespace {

constexpr int kMostUrgent = -5;

/// What a call says that did its part: the device may have failed meanwhile.
cudaError_t health(Runtime& all, int device) {
  return all.device(device).sticky;
}

} // namespace

// ---- streams ----

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* out, unsigned flags, int priority) {
  return function(__func__, Needs::kHealth, [&](Runtime& all, Runtime::Lock&) {
    if (out == nullptr || flags > cudaStreamNonBlocking) refuse(cudaErrorInvalidValue);
    auto made = std::make_shared<Stream>();
    made->device = calling.device;
    made->flags = flags;
    made->priority = std::clamp(priority, kMostUrgent, 0);
    *out = all.streams.add(std::move(made));
    return cudaSuccess;
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned flags) {
  return cudaStreamCreateWithPriority(out, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t* out) {
  return cudaStreamCreateWithPriority(out, cudaStreamDefault, 0);
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
  return function(__func__, Needs::kDriver, [&](Runtime& all, Runtime::Lock&) {
    *priority = all.stream(handle)->priority;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetDevice(cudaStream_t handle, int* device) {
  return function(__func__, Needs::kDriver, [&](Runtime& all, Runtime::Lock&) {
    if (device == nullptr) refuse(cudaErrorInvalidValue);
    *device = all.stream(handle)->device;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  return function(__func__, Needs::kDriver, [&](Runtime& all, Runtime::Lock&) {
    if (handle == nullptr) refuse(cudaErrorInvalidResourceHandle);
    all.abandonCapture(*all.stream(handle));
    const auto dying = all.streams.take(handle);
    dying->destroyed = true;
    dying->wake.notify_all();
    return health(all, dying->device);
  });
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return function(__func__, Needs::kDriver, [&](Runtime& all, Runtime::Lock&) {
    const auto stream = all.stream(handle);
    all.refuseCaptured(*stream);
    if (stream->completed < stream->submitted) return cudaErrorNotReady;
    return health(all, stream->device);
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return function(__func__, Needs::kDriver, [&](Runtime& all, Runtime::Lock& lock) {
    const auto stream = all.stream(handle);
    all.refuseCaptured(*stream);
    all.wait(lock, stream);
    return health(all, stream->device);
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned flags) {
  return function(__func__, Needs::kDriver, [&](Runtime& all, Runtime::Lock&) {
    if (event == nullptr) refuse(cudaErrorInvalidResourceHandle);
    if (flags != cudaEventWaitDefault) refuse(cudaErrorInvalidValue);
    const auto stream = all.stream(handle);
    all.refuseLost(stream->device);
    all.waitEvent(stream, *all.events.find(event));
    return cudaSuccess;
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t body, void* data) {
  return function(__func__, Needs::kDriver, [&](Runtime& all, Runtime::Lock&) {
    if (body == nullptr) refuse(cudaErrorInvalidValue);
    const auto stream = all.stream(handle);
    all.refuseLost(stream->device);
    all.submit(stream, {Work::Kind::kHostFunction, [=] { body(data); }, nullptr});
    return cudaSuccess;
  });
}

// ---- events ----

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* out, unsigned flags) {
  return function(__func__, Needs::kHealth, [&](Runtime& all, Runtime::Lock&) {
    const unsigned known = cudaEventBlockingSync | cudaEventDisableTiming;
    if (out == nullptr || (flags & ~known) != 0) refuse(cudaErrorInvalidValue);
    auto made = std::make_shared<Event>();
    made->device = calling.device;
    made->flags = flags;
    *out = all.events.add(std::move(made));
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreate(cudaEvent_t* out) {
  return cudaEventCreateWithFlags(out, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return function(__func__, Needs::kDriver, [&](Runtime& all, Runtime::Lock&) {
    if (event == nullptr) refuse(cudaErrorInvalidResourceHandle);
    return health(all, all.events.take(event)->device);
  });
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t on) {
  return function(__func__, Needs::kDriver, [&](Runtime& all, Runtime::Lock&) {
    if (handle == nullptr) refuse(cudaErrorInvalidResourceHandle);
    const auto event = all.events.find(handle);
    const auto stream = all.stream(on);
    if (event->device != stream->device) refuse(cudaErrorInvalidResourceHandle);
    all.refuseLost(stream->device);
    all.record(*event, stream);
    return cudaSuccess;
  });
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return function(__func__, Needs::kDriver, [&](Runtime& all, Runtime::Lock&) {
    const auto event = all.events.find(handle);
    all.refuseUnsafe();
    all.refuseCaptured(*event);
    if (event->last != nullptr && !event->last->done) return cudaErrorNotReady;
    return health(all, event->device);
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return function(__func__, Needs::kDriver, [&](Runtime& all, Runtime::Lock& lock) {
    const auto event = all.events.find(handle);
    all.refuseUnsafe();
    all.refuseCaptured(*event);
    const std::shared_ptr<Record> last = event->last;
    all.progress.wait(lock, [&] { return last == nullptr || last->done; });
    return health(all, event->device);
  });
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t begin, cudaEvent_t end) {
  return function(__func__, Needs::kDriver, [&](Runtime& all, Runtime::Lock&) {
    if (ms == nullptr) refuse(cudaErrorInvalidValue);
    const auto first = all.events.find(begin);
    const auto last = all.events.find(end);
    for (const auto& each : {first, last}) {
      const bool timed = (each->flags & cudaEventDisableTiming) == 0;
      if (!timed || each->last == nullptr) refuse(cudaErrorInvalidResourceHandle);
    }
    if (first->device != last->device) refuse(cudaErrorInvalidResourceHandle);
    all.refuseLost(first->device);
    if (!first->last->done || !last->last->done) return cudaErrorNotReady;
    const auto ns = static_cast<int64_t>(last->last->time_ns - first->last->time_ns);
    *ms = static_cast<float>(static_cast<double>(ns) / 1e6);
    return cudaSuccess;
  });
}

// ---- capture and graphs ----

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  return function(__func__, Needs::kDriver, [&](Runtime& all, Runtime::Lock&) {
    const auto stream = all.stream(handle);
    all.refuseLost(stream->device);
    all.beginCapture(stream, mode);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* out) {
  return function(__func__, Needs::kDriver, [&](Runtime& all, Runtime::Lock&) {
    if (out == nullptr) refuse(cudaErrorInvalidValue);
    *out = nullptr;
    *out = all.graphs.add(all.endCapture(all.stream(handle)));
    return cudaSuccess;
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* out) {
  return function(__func__, Needs::kDriver, [&](Runtime& all, Runtime::Lock&) {
    const auto stream = all.stream(handle);
    *out = stream->capture == nullptr ? cudaStreamCaptureStatusNone
           : stream->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                      : cudaStreamCaptureStatusActive;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetCaptureInfo(
    cudaStream_t handle,
    cudaStreamCaptureStatus* status,
    unsigned long long* id,
    cudaGraph_t* graph,
    const cudaGraphNode_t** dependencies,
    const cudaGraphEdgeData** edges,
    size_t* count) {
  if (graph != nullptr || dependencies != nullptr || edges != nullptr || count != nullptr) {
    violation("cudaStreamGetCaptureInfo gives the status and the id only");
  }
  if (const cudaError_t error = cudaStreamIsCapturing(handle, status)) return error;
  Runtime& all = runtime();
  const Runtime::Lock lock(all.mutex);
  const auto stream = all.stream(handle);
  if (id != nullptr && stream->capture != nullptr) *id = stream->capture->id;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return function(__func__, Needs::kNothing, [&](Runtime&, Runtime::Lock&) {
    std::swap(*mode, calling.capture_mode);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphInstantiate(
    cudaGraphExec_t* out, cudaGraph_t graph, unsigned long long /*flags*/) {
  return function(__func__, Needs::kHealth, [&](Runtime& all, Runtime::Lock&) {
    if (out == nullptr) refuse(cudaErrorInvalidValue);
    *out = all.executables.add(std::make_shared<Graph>(*all.graphs.find(graph)));
    return cudaSuccess;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t on) {
  return function(__func__, Needs::kDriver, [&](Runtime& all, Runtime::Lock&) {
    const auto stream = all.stream(on);
    all.refuseLost(stream->device);
    all.launch(stream, *all.executables.find(graph));
    return cudaSuccess;
  });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t graph, cudaStream_t on) {
  return function(__func__, Needs::kDriver, [&](Runtime& all, Runtime::Lock&) {
    all.stream(on);
    all.executables.find(graph);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  if (nodes != nullptr) violation("cudaGraphGetNodes counts only");
  return function(__func__, Needs::kDriver, [&](Runtime& all, Runtime::Lock&) {
    *count = all.graphs.find(graph)->nodes.size();
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return function(__func__, Needs::kDriver, [&](Runtime& all, Runtime::Lock&) {
    all.drop(*all.graphs.take(graph));
    return cudaSuccess;
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  return function(__func__, Needs::kDriver, [&](Runtime& all, Runtime::Lock&) {
    all.drop(*all.executables.take(graph));
    return cudaSuccess;
  });
}
