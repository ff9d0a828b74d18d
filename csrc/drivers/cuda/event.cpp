// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/cuda/event.h"

#include "drivers/cuda/status.h"

namespace puone::cuda {

EventPool::~EventPool() {
  for (const auto& events : resting_) {
    for (cudaEvent_t event : events) note("cudaEventDestroy", cudaEventDestroy(event));
  }
}

cudaEvent_t EventPool::take(uint32_t flags) {
  const std::lock_guard guard(mutex_);
  std::vector<cudaEvent_t>& resting = resting_[flags];
  if (!resting.empty()) {
    cudaEvent_t event = resting.back();
    resting.pop_back();
    return event;
  }
  cudaEvent_t event = nullptr;
  check(
      "cudaEventCreateWithFlags",
      cudaEventCreateWithFlags(
          &event,
          ((flags & PUONE_EVENT_TIMING) != 0 ? 0u : cudaEventDisableTiming) |
              ((flags & PUONE_EVENT_BLOCKING_SYNC) != 0 ? cudaEventBlockingSync : 0u)));
  return event;
}

void EventPool::give(uint32_t flags, cudaEvent_t event) {
  const std::lock_guard guard(mutex_);
  resting_[flags].push_back(event);
}

} // namespace puone::cuda
