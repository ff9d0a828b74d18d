// SPDX-License-Identifier: BSD-3-Clause
// Whether the host has stopped calling the driver of its own accord. A host that waits for a
// processor on a busy machine has not, however long that takes.
#pragma once

#include <cstdint>

namespace puone::sim {

/// Used by one thread, which is not the host's.
class HostPause {
 public:
  /// The host has made a call.
  void restart();
  /// Looks what the host has done since the last look, which was about `slice_ns` ago.
  void look(uint64_t slice_ns);
  /// How long it has slept or computed without a call, in ns.
  uint64_t length() const {
    return length_ns_;
  }

 private:
  uint64_t length_ns_ = 0;
  uint64_t looked_ns_ = 0;     // wall-clock time of the last look
  uint64_t looked_cpu_ns_ = 0; // and the time of all processors that the process had used
};

} // namespace puone::sim
