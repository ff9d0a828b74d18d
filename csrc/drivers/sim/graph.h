// SPDX-License-Identifier: BSD-3-Clause
// Work captured from streams, to be queued again at each launch: the extension "graph". Guarded by
// the scheduler's lock.
//
// A graph is the list of calls that were captured. Its *lanes* are the streams they were queued on:
// the one that the capture began on, which becomes the stream of the launch, and those that joined
// it by waiting for one of its events, which become new streams of each launch. So a launch leaves
// open what the captured events leave open, and the adversarial schedule reorders that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "drivers/sim/stream.h"

namespace puone::sim {

struct Graph {
  struct Lane {
    int32_t device;
    int32_t priority;
  };
  struct Step {
    size_t lane;
    Work::Kind kind;
    std::unique_ptr<const Work>
        work;          // what each launch queues a copy of; of records and waits none
    size_t record = 0; // number of the record that is made or waited for
  };

  std::vector<Lane> lanes;                        // never empty
  std::vector<Step> steps;                        // in the order of the calls
  std::vector<std::shared_ptr<const void>> needs; // of the work
  size_t records = 0;
  bool instantiated = false;
  std::shared_ptr<Record> last; // the end of the last launch, or none
};

/// A capture that goes on. Its streams point to it.
class Capture {
 public:
  explicit Capture(std::shared_ptr<Stream> origin);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  const Stream& origin() const {
    return *lanes_.front();
  }
  /// Marks the records of events; never 0, and not used again by another capture.
  uint64_t id() const {
    return id_;
  }

  // These take a stream that is being captured by this.
  void add(const Stream& stream, std::unique_ptr<const Work> work);
  void record(const Stream& stream, Record& record);

  /// Lets a stream wait for a record of this capture. One that is not being captured joins it.
  void wait(const std::shared_ptr<Stream>& stream, const Record& record);

  /// The graph. Throws Error(INVALID_ARGUMENT) if the origin has not waited for all work of the
  /// other streams.
  std::unique_ptr<Graph> end();

 private:
  /// How many calls of each lane come before a point in the order: a vector clock (Mattern, 1989).
  using Clock = std::vector<size_t>;

  void join(std::shared_ptr<Stream> stream);
  Graph::Step& append(size_t lane, Work::Kind kind);
  void advance(size_t lane);

  const uint64_t id_;
  std::unique_ptr<Graph> graph_;
  std::vector<std::shared_ptr<Stream>> lanes_;
  std::vector<Clock> clocks_;        // of the ends of the lanes
  std::vector<Clock> record_clocks_; // of the records
};

} // namespace puone::sim
