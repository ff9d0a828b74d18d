// SPDX-License-Identifier: BSD-3-Clause
// Launching a kernel by name with its argument struct (csrc/kernels/args.h).
#pragma once

#include <atomic>

#include "hal/hal.h"
#include "runtime/stream.h"

namespace puone {

// A kernel looked up once and launched many times; make it `static const` at the call site. The
// lookup happens at the first launch. Thread-safe.
class Kernel {
 public:
  constexpr explicit Kernel(const char* name) noexcept : name_(name) {}

  template <typename Args>
  void launch(const Args& args, const Stream& stream) const {
    launch(&args, sizeof(Args), stream);
  }

 private:
  void launch(const void* args, size_t bytes, const Stream& stream) const;

  const char* name_;
  mutable std::atomic<puone_kernel> kernel_{nullptr};
};

} // namespace puone
