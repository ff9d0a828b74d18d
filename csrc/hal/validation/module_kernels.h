// SPDX-License-Identifier: BSD-3-Clause
// Which kernels end with which module. Thread-safe.
#pragma once

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "hal/module.h"
#include "hal/validation/live_objects.h"

namespace puone::validation {

/// The kernels of live modules, which end with them.
class ModulesKernels {
 public:
  void add(puone_module module, puone_kernel kernel, uint64_t bits) {
    const std::lock_guard guard(mutex_);
    all_[module].emplace_back(kernel, bits);
  }
  /// Ends the kernels of a module. What it gives goes back to revive() if they live on.
  auto end(puone_module module) {
    const std::lock_guard guard(mutex_);
    auto ended = all_.extract(module);
    if (!ended.empty()) {
      for (const auto& [kernel, bits] : ended.mapped()) live().kernels.erase(kernel);
    }
    return ended;
  }
  template <class Ended>
  void revive(Ended ended) {
    if (ended.empty()) return;
    for (const auto& [kernel, bits] : ended.mapped()) live().kernels.insert(kernel, bits);
    const std::lock_guard guard(mutex_);
    all_.insert(std::move(ended));
  }
  void clear() {
    const std::lock_guard guard(mutex_);
    all_.clear();
  }
  /// Hold the lock during fork(), before those of the sets.
  void lock() {
    mutex_.lock();
  }
  void unlock() {
    mutex_.unlock();
  }

 private:
  std::mutex mutex_;
  std::map<puone_module, std::vector<std::pair<puone_kernel, uint64_t>>> all_;
};

inline ModulesKernels& modulesKernels() {
  static auto* const only = new ModulesKernels(); // leaked, as what is live
  return *only;
}

} // namespace puone::validation
