// SPDX-License-Identifier: BSD-3-Clause
// The capture of a graph, as the runtime sees it: which streams take part, and what work on them
// takes from the graph instead of from the device. csrc/graph begins and ends it.
//
// There is at most one capture at a time in the process; all streams that are being captured belong
// to it. Everything here is thread-safe.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Storage.h>
#include <c10/macros/Macros.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "hal/hal.h"
#include "runtime/stream.h"

namespace puone {

class GeneratorImpl;
struct PhiloxPosition;

// What a graph needs of its capture. Implemented in csrc/graph.
class Capture {
 public:
  // `mempool`: of the memory that is allocated meanwhile.
  explicit Capture(c10::MempoolId_t mempool) : pool(mempool) {}
  virtual ~Capture() = default;
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // Of the memory that is allocated on a captured stream.
  const c10::MempoolId_t pool;

  // Where a kernel on a captured stream finds `numbers` random numbers of 32 bits. Throws
  // NotImplementedError if the driver lacks what that needs.
  virtual PhiloxPosition draw(GeneratorImpl& generator, uint64_t numbers) = 0;

  // Keeps pinned memory alive that a captured copy reads or writes.
  virtual void keep(const c10::Storage& storage) = 0;
};

// The driver's graphs. Throws NotImplementedError if it has none.
const puone_graph_api& graphApi();

// Begins a capture on a stream: from here on captureOf() finds it. Throws c10::Error if another is
// underway, or if the driver refuses.
void beginCapture(std::shared_ptr<Capture> capture, const Stream& stream);

// Ends the capture that was begun on the stream. The caller owns the graph. Throws if the driver
// refuses what was captured; the capture is over all the same.
puone_graph endCapture(const Stream& stream);

// Whether any stream is being captured.
bool isCaptureUnderway() noexcept;

namespace detail {
extern std::atomic<bool> capture_underway;
std::shared_ptr<Capture> findCapture(const Stream& stream);
} // namespace detail

// The capture that work queued on the stream becomes part of; NULL if the stream is not being
// captured. Costs a load while nothing is captured.
inline std::shared_ptr<Capture> captureOf(const Stream& stream) {
  if (C10_LIKELY(!detail::capture_underway.load(std::memory_order_relaxed))) return nullptr;
  return detail::findCapture(stream);
}

// Whether work queued on the stream becomes part of a graph.
inline bool isCapturing(const Stream& stream) {
  return captureOf(stream) != nullptr;
}

// Throws if the stream is being captured: `what`, the begin of a sentence, cannot be done then.
void refuseInCapture(const Stream& stream, const char* what);

} // namespace puone
