// SPDX-License-Identifier: BSD-3-Clause
// What the runtime has to know of the capture of a graph: which streams take part, which pool their
// memory comes from, and where their kernels find random numbers. csrc/graph begins and ends it.
//
// There is at most one capture at a time in the process; all streams that are being captured belong
// to it. Everything here is thread-safe.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Storage.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "hal/hal.h"
#include "runtime/event.h"
#include "runtime/generator.h"
#include "runtime/stream.h"
#include "runtime/stream_memory.h"

namespace puone {

// What a graph needs besides its work, for as long as it may be launched.
class Capture {
 public:
  explicit Capture(c10::MempoolId_t pool) : pool(pool) {}
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  const c10::MempoolId_t pool; // of the memory of all streams that are being captured

  // Where a kernel that is being captured finds `numbers` random numbers of 32 bits: behind those
  // that the capture has drawn before. Throws NotImplementedError if the driver cannot fill memory.
  PhiloxPosition draw(GeneratorImpl& generator, uint64_t numbers, const Stream& stream);

  // Keeps pinned memory alive that a copy in the graph reads or writes.
  void keep(const c10::Storage& storage);

  // Lets the next launch on `stream` draw new numbers: as many as its work draws are taken from each
  // generator. The launch must follow, and then launched().
  void advance(const Stream& stream);
  void launched(const Stream& stream);

 private:
  struct Draws {
    at::Generator generator;
    StreamMemory state; // seed and offset, which kernels read when they run
    uint64_t numbers;   // drawn by one launch
  };

  Draws& drawsOf(GeneratorImpl& generator, const Stream& stream);

  std::mutex mutex_; // guards what follows
  std::vector<Draws> draws_;
  Event last_; // behind the last launch, if there are draws
  std::vector<c10::Storage> kept_;
  std::vector<Stream> launched_on_; // if something is kept
};

// The driver's graphs. Throws NotImplementedError if it has none.
const puone_graph_api& graphApi();

// Begins a capture on a stream: from here on captureOf() finds it. Throws c10::Error if another is
// underway, or if the driver refuses.
void beginCapture(const std::shared_ptr<Capture>& capture, const Stream& stream);

// Ends the capture that was begun on the stream. The caller owns the graph. Throws if the driver
// refuses what was captured; the capture is over all the same.
puone_graph endCapture(const Stream& stream);

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

inline bool isCapturing(const Stream& stream) {
  return captureOf(stream) != nullptr;
}

// Throws if the stream is being captured: `what`, the begin of a sentence, cannot be.
void refuseInCapture(const Stream& stream, const char* what);

} // namespace puone
