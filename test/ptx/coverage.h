// SPDX-License-Identifier: BSD-3-Clause
// What was executed. Where PUONE_PTX_COVERAGE names a directory, that is left in its files,
// whatever way the process ends: ID.ptx has the module's text, ID.PID.N.counts by line how many
// instructions warps executed (uint64_t each, from line 0), ID.PID.N.entries the kernels that were
// launched; `kernels` has those of the driver, in modules that nothing has loaded, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "source.h"

namespace puone::ptx {

class Coverage {
 public:
  explicit Coverage(const Module& module);
  ~Coverage();
  Coverage(const Coverage&) = delete;
  Coverage& operator=(const Coverage&) = delete;

  uint64_t* counts() {
    return counts_;
  }
  void noteEntry(const std::string& name) const;

 private:
  std::string stem_; // empty: nothing is kept
  size_t bytes_;
  uint64_t* counts_ = nullptr;
  std::vector<uint64_t> own_;
};

/// Leaves the names of all kernels of a driver.
void noteKernels(const std::vector<std::string>& names);

} // namespace puone::ptx
