// SPDX-License-Identifier: BSD-3-Clause
// What the environment asks of the executor for its own tests.
#pragma once

#include <mutex>
#include <set>
#include <string>

#include "source.h"

namespace puone::ptx {

class Coverage {
 public:
  static Coverage& instance();

  /// Modules whose counts are written when the process ends, or when they are unloaded, if
  /// PUONE_PTX_COVERAGE names a directory: ID.ptx has the module's text, ID.PID.SERIAL.counts the
  /// lines that were executed ("line NUMBER COUNT") and the grids ("grid COUNT ENTRY").
  void add(const Module& module);
  void remove(const Module& module);

  /// The text with the line that PUONE_PTX_CHANGE ("ID LINE NEW TEXT OF THE LINE") changes, if it
  /// is the text named.
  std::string patched(std::string text) const;

 private:
  void write(const Module& module);

  std::mutex mutex_;
  std::set<const Module*> modules_;
  unsigned serial_ = 0;
};

} // namespace puone::ptx
