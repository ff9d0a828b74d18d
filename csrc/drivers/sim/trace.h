// SPDX-License-Identifier: BSD-3-Clause
// What the device did, and when: the records of the extension "trace". The scheduler writes the
// times into them. Guarded by the scheduler's lock.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "drivers/sim/scheduler.h"
#include "drivers/sim/stream.h"
#include "hal/hal.h"

namespace puone::sim {

class Tracer {
 public:
  /// Throws Error(INVALID_ARGUMENT) if tracing is on, or being stopped by another thread.
  void start();
  /// Stops, and waits for the work recorded; may release the lock meanwhile. The records live until
  /// the next start(). Throws Error(INVALID_ARGUMENT) if it is off, Error(DEVICE_LOST).
  const std::vector<puone_trace_record>& stop(Scheduler& scheduler, Scheduler::Lock& lock);

  bool on() const {
    return state_ == State::kOn;
  }
  /// Records work that is about to be queued on the stream.
  void add(puone_stream handle, const std::shared_ptr<Stream>& stream, Work& work);
  /// Records the launch of a graph, which lasts from one record of an event to another one.
  void addGraph(
      puone_stream handle,
      const std::shared_ptr<Stream>& stream,
      std::shared_ptr<Record> begin,
      std::shared_ptr<Record> end);

 private:
  enum class State : uint8_t {
    kOff,
    kOn,
    kStopping
  };
  struct Launch {
    puone_trace_record* record;
    std::shared_ptr<Record> begin;
    std::shared_ptr<Record> end;
  };

  puone_trace_record* append(
      puone_stream handle, const std::shared_ptr<Stream>& stream, const Work::Description& work);

  State state_ = State::kOff;
  std::deque<puone_trace_record> traced_; // work that is queued points into it
  std::vector<Launch> launches_;
  std::unordered_map<std::shared_ptr<Stream>, uint64_t> last_; // work recorded of each stream
  std::vector<puone_trace_record> records_;
};

} // namespace puone::sim
