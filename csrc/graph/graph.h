// SPDX-License-Identifier: BSD-3-Clause
// Graphs: work captured from a stream, to be replayed as one. What torch.accelerator.Graph and
// torch.puone.PUONEGraph are over; the model is torch.cuda.CUDAGraph.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <memory>
#include <optional>

#include "graph/resources.h"
#include "hal/hal.h"
#include "runtime/stream.h"

namespace puone::graph {

// Not thread-safe. Functions throw c10::Error where the state or the driver does not allow them,
// and NotImplementedError if the driver has no graphs.
class Graph {
 public:
  // `keep`: the graph is instantiated by instantiate() or the first replay(), not by captureEnd().
  explicit Graph(bool keep) : keep_(keep) {}
  // As reset().
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // Captures what is queued on the current stream from now on, which must not be the default
  // stream, and on streams that wait for it. Memory allocated there comes from `pool`, which other
  // graphs may use too: {0, 0} is a new one.
  void captureBegin(c10::MempoolId_t pool);

  // Ends the capture. If it fails, for example because a stream was left unjoined, the capture is
  // over all the same, and this holds nothing.
  void captureEnd();

  // Makes the graph ready for replay.
  void instantiate();

  // Queues the whole graph on the current stream of the device that it was captured on. Its kernels
  // draw the next random numbers of their generators. Waits for nothing.
  void replay();

  // Gives up what was captured, and the pool; waits for the device if the pool has no other graph.
  // A new capture may begin afterwards.
  void reset();

  // Throws before the first capture, and after reset().
  c10::MempoolId_t pool() const;

 private:
  void abandonCapture() noexcept;

  const bool keep_;
  std::shared_ptr<Resources> resources_; // set from captureBegin() to reset()
  std::optional<Stream> capturing_;      // where a capture is underway
  c10::DeviceIndex device_ = -1;         // of the capture
  puone_graph graph_ = nullptr;          // set by captureEnd()
  bool ready_ = false;
};

// The id of a pool of which no graph has memory yet.
c10::MempoolId_t newPool();

} // namespace puone::graph
