// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/cuda/trace.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "drivers/common/correlation.h"
#include "drivers/common/error.h"
#include "drivers/cuda/status.h"

namespace puone::cuda {
namespace {

uint64_t hostNs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::nanoseconds(now).count());
}

uint64_t nsBetween(const NativeEvent& from, const NativeEvent& to) {
  float ms = 0;
  check("cudaEventElapsedTime", cudaEventElapsedTime(&ms, from.get(), to.get()));
  return static_cast<uint64_t>(std::max(0.0, static_cast<double>(ms) * 1e6));
}

void recordNow(const NativeEvent& event, cudaStream_t stream) {
  check("cudaEventRecord", cudaEventRecord(event.get(), stream));
}

} // namespace

void Tracer::start() {
  const std::lock_guard guard(mutex_);
  if (on_.load(std::memory_order_relaxed)) fail(PUONE_INVALID_ARGUMENT, "tracing is on already");
  records_.clear();
  traced_.clear();
  anchors_.clear();
  on_.store(true, std::memory_order_relaxed);
}

/// Finds a moment on both clocks: the shortest of several round trips is off by half of it at most.
void Tracer::anchor(Device& device) {
  if (anchors_.contains(device.index)) return;
  NativeStream& stream = device.streams.take(0);
  NativeEvent best(device.events, PUONE_EVENT_TIMING);
  uint64_t best_ns = 0;
  uint64_t best_trip = UINT64_MAX;
  for (int i = 0; i < 5; ++i) {
    NativeEvent event(device.events, PUONE_EVENT_TIMING);
    const uint64_t before = hostNs();
    recordNow(event, stream.get());
    check("cudaEventSynchronize", cudaEventSynchronize(event.get()));
    const uint64_t trip = hostNs() - before;
    if (trip >= best_trip) continue;
    best_trip = trip;
    best_ns = before + trip / 2;
    std::swap(best, event);
  }
  device.streams.give(stream);
  anchors_.emplace(device.index, Anchor{std::move(best), best_ns});
}

Tracer::Traced Tracer::begin(const Work& work) {
  {
    const std::lock_guard guard(mutex_);
    anchor(work.device);
  }
  Traced traced{
      {work.name,
       work.handle,
       0,
       0,
       work.bytes,
       Correlation::next(),
       static_cast<int32_t>(work.kind),
       work.device.index},
      NativeEvent(work.device.events, PUONE_EVENT_TIMING),
      NativeEvent(work.device.events, PUONE_EVENT_TIMING),
      work.stream};
  recordNow(traced.begin, work.stream);
  return traced;
}

void Tracer::end(Traced traced) {
  recordNow(traced.end, traced.stream);
  const std::lock_guard guard(mutex_);
  if (on_.load(std::memory_order_relaxed)) traced_.push_back(std::move(traced));
}

puone_trace_record Tracer::resolved(const Traced& traced) const {
  check("cudaEventSynchronize", cudaEventSynchronize(traced.end.get()));
  const Anchor& anchor = anchors_.at(traced.record.device);
  puone_trace_record record = traced.record;
  record.begin_ns = anchor.ns + nsBetween(anchor.event, traced.begin);
  record.end_ns = record.begin_ns + nsBetween(traced.begin, traced.end);
  return record;
}

const std::vector<puone_trace_record>& Tracer::stop() {
  const std::lock_guard guard(mutex_);
  if (!on_.exchange(false, std::memory_order_relaxed)) {
    fail(PUONE_INVALID_ARGUMENT, "tracing is off");
  }
  for (const Traced& traced : traced_) records_.push_back(resolved(traced));
  traced_.clear();
  std::sort(records_.begin(), records_.end(), [](const auto& a, const auto& b) {
    return a.correlation < b.correlation;
  });
  return records_;
}

} // namespace puone::cuda
