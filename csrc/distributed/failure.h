// SPDX-License-Identifier: BSD-3-Clause
// Why a process group is unusable. It reaches the program once by itself: at the next
// synchronisation with a device that took part, unless a call raises it before.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <exception>
#include <set>
#include <string>
#include <vector>

namespace puone::distributed {

class Failure {
 public:
  // The error is a c10::DistBackendError, in Python torch.distributed.DistBackendError.
  Failure(const std::string& message, const std::set<c10::DeviceIndex>& devices);
  Failure(const Failure&) = delete;
  Failure& operator=(const Failure&) = delete;

  const std::exception_ptr& error() const noexcept {
    return error_;
  }
  // Throws the error; synchronisations no longer do.
  [[noreturn]] void raise() const;

 private:
  std::exception_ptr error_;
  std::vector<uint64_t> deferred_;
};

} // namespace puone::distributed
