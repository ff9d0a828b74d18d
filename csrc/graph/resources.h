// SPDX-License-Identifier: BSD-3-Clause
// What a graph needs besides its work, for as long as it may be launched: the states of its random
// numbers, and the pinned memory of its copies.
#pragma once

#include <ATen/core/Generator.h>

#include <mutex>
#include <optional>
#include <vector>

#include "runtime/capture.h"
#include "runtime/event.h"
#include "runtime/generator.h"
#include "runtime/stream_memory.h"

namespace puone::graph {

// Thread-safe.
class Resources final : public Capture {
 public:
  using Capture::Capture;
  // Pinned memory is reused when the launches are done that use it.
  ~Resources() override;

  // Allocates the states of random numbers. To be called when the capture on `stream` has begun and
  // nothing has been captured: memory that captured work used before would be written by a launch
  // after the states were.
  void reserveStates(const Stream& stream);

  PhiloxPosition draw(GeneratorImpl& generator, uint64_t numbers) override;
  void keep(const c10::Storage& storage) override;

  // Around each launch of the graph on `stream`. The first takes from each generator as many
  // numbers as the graph draws, and queues the writing of the states that its kernels read.
  void beforeLaunch(const Stream& stream);
  void afterLaunch(const Stream& stream);

 private:
  struct Draws {
    at::Generator generator;
    uint64_t numbers; // drawn by one launch
  };

  size_t indexOf(GeneratorImpl& generator);
  void* stateOf(size_t index) const;

  std::mutex mutex_;    // guards what follows
  std::optional<StreamMemory> states_; // a seed and an offset for each of:
  std::vector<Draws> draws_;
  Event last_; // behind the last launch, if there are draws
  std::vector<c10::Storage> kept_;
  std::vector<Stream> launched_on_; // if something is kept
};

} // namespace puone::graph
