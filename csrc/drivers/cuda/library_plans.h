// SPDX-License-Identifier: BSD-3-Clause
// How one of NVIDIA's libraries does the calls that a handle has had. Not for several threads.
#pragma once

#include <cstddef>
#include <map>

namespace puone::cuda {

template <class Key, class Plan>
class LibraryPlans {
 public:
  /// The plan of what `key` describes, made by `make` if there is none yet.
  template <class Make>
  Plan& of(const Key& key, const Make& make) {
    const auto known = plans_.find(key);
    if (known != plans_.end()) return known->second;
    if (plans_.size() >= kMost) plans_.clear();
    return plans_.emplace(key, make()).first->second;
  }

 private:
  /// Shapes that change all the time must not fill the memory.
  static constexpr size_t kMost = 256;

  std::map<Key, Plan> plans_;
};

} // namespace puone::cuda
