// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "violation.h"

namespace puone::standin {

/// Live objects by handle. Handles are no addresses and never come back: the use of a dead one is
/// seen for sure.
template <class Handle, class Object>
class Handles {
 public:
  Handles(const char* noun, uintptr_t first) : noun_(noun), next_(first) {}

  Handle add(std::shared_ptr<Object> object) {
    const Handle handle = reinterpret_cast<Handle>(next_);
    next_ += 16;
    live_.emplace(handle, std::move(object));
    return handle;
  }

  const std::shared_ptr<Object>& find(Handle handle) const {
    const auto found = live_.find(handle);
    if (found == live_.end()) violation("%p is no live %s", static_cast<void*>(handle), noun_);
    return found->second;
  }

  std::shared_ptr<Object> take(Handle handle) {
    std::shared_ptr<Object> object = find(handle);
    live_.erase(handle);
    return object;
  }

  const std::map<Handle, std::shared_ptr<Object>>& all() const {
    return live_;
  }

 private:
  const char* const noun_;
  uintptr_t next_;
  std::map<Handle, std::shared_ptr<Object>> live_;
};

} // namespace puone::standin
