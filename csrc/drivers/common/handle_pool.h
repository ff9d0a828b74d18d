// SPDX-License-Identifier: BSD-3-Clause
// The objects behind a driver's handles that are not destroyed yet. A handle is the object's
// address, so using it takes no lock and no look-up; the validation layer checks whether it is
// alive (hal/validation.h). Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace puone {

template <class T>
class HandlePool {
 public:
  template <class... Args>
  T* add(Args&&... args) {
    auto object = std::make_unique<T>(std::forward<Args>(args)...);
    T* const handle = object.get();
    const std::lock_guard guard(mutex_);
    live_.emplace(handle, std::move(object));
    return handle;
  }

  /// Ends a live handle. Its object is destroyed here, without the lock.
  void remove(const T* handle) {
    std::unique_ptr<T> last;
    const std::lock_guard guard(mutex_);
    const auto found = live_.find(handle);
    last = std::move(found->second);
    live_.erase(found);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<const T*, std::unique_ptr<T>> live_;
};

} // namespace puone
