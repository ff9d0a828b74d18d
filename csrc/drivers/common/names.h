// SPDX-License-Identifier: BSD-3-Clause
// Names that stay until the driver ends: records of traces have those of kernels whose modules are
// gone.
#pragma once

#include <mutex>
#include <string>
#include <unordered_set>

namespace puone {

/// Thread-safe.
class Names {
 public:
  const char* keep(std::string name) {
    const std::lock_guard guard(mutex_);
    return all_.insert(std::move(name)).first->c_str();
  }

 private:
  std::mutex mutex_;
  std::unordered_set<std::string> all_;
};

} // namespace puone
