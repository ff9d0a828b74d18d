// SPDX-License-Identifier: BSD-3-Clause
// Handles of one of NVIDIA's libraries, which threads must not share while they queue a call.
// Thread-safe.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <vector>

#include "drivers/cuda/status.h"

namespace puone::cuda {

/// What the library's function makes; NULL, with a note, where the library is too new for the
/// driver, or does not know the device.
template <class Native, class Status>
Native createNative(const char* call, Status (*create)(Native*)) {
  Native native = nullptr;
  if (create(&native) == Status::kSuccess) return native;
  note(call, cudaGetLastError());
  return nullptr;
}

template <class Handle>
class LibraryHandles {
 public:
  /// `create` makes a handle; NULL where there is none to be had.
  explicit LibraryHandles(Handle* (*create)()) : create_(create) {}

  /// A handle that nobody else has for as long as this lives: its stream and its workspace are
  /// those of one call. NULL where there is none to be had; waits for one where there are no more.
  class Taken {
   public:
    explicit Taken(LibraryHandles& of) : of_(of) {
      std::unique_lock guard(of.mutex_);
      if (of.idle_.empty() && !of.has_all_) {
        guard.unlock();
        handle_ = of.create_();
        guard.lock();
        if (handle_ != nullptr) {
          of.idle_.reserve(++of.made_);
          return;
        }
        of.has_all_ = true;
      }
      if (of.made_ == 0) return;
      of.returned_.wait(guard, [&] { return !of.idle_.empty(); });
      handle_ = of.idle_.back();
      of.idle_.pop_back();
    }
    ~Taken() {
      if (handle_ == nullptr) return;
      {
        const std::lock_guard guard(of_.mutex_);
        of_.idle_.push_back(handle_);
      }
      of_.returned_.notify_one();
    }
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;
    Handle* get() const {
      return handle_;
    }

   private:
    LibraryHandles& of_;
    Handle* handle_ = nullptr;
  };

  /// Whether there are handles; makes the first one.
  bool isUsable() {
    {
      const std::lock_guard guard(mutex_);
      if (made_ > 0) return true;
    }
    return Taken(*this).get() != nullptr;
  }

 private:
  Handle* (*const create_)();
  std::mutex mutex_; // of what follows
  std::condition_variable returned_;
  std::vector<Handle*> idle_; // never destroyed: CUDA may end before the driver does
  size_t made_ = 0;
  bool has_all_ = false; // no further one can be made
};

} // namespace puone::cuda
