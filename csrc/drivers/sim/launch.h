// SPDX-License-Identifier: BSD-3-Clause
// The sim driver's side of a kernel launch.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "drivers/sim/memory.h"
#include "drivers/sim/parallel.h"
#include "kernels/launch.h"

namespace puone::sim {

class SimLaunch final : public kernels::Launch {
 public:
  SimLaunch(const Memory& memory, Parallel& parallel) : memory_(memory), parallel_(parallel) {}

  unsigned char* resolve(void* device_address) const override;
  kernels::DeviceError deviceError(std::string_view message) override;
  /// After the kernel: throws the device error that it has raised, if any.
  void throwDeviceError() const;

  void delay(uint64_t ns) override {
    delay_ns_ = ns;
  }
  uint64_t delayNs() const {
    return delay_ns_;
  }

  /// memcpy/memset of backing memory, spread over the cores if it is large.
  void copyBytes(void* to, const void* from, size_t bytes);
  void fillBytes(void* to, int value, size_t bytes);

 private:
  void spread(int64_t n, int64_t grain, RangeBody body, const void* context) override;

  const Memory& memory_;
  Parallel& parallel_;
  uint64_t delay_ns_ = 0;
  kernels::ErrorRecord error_{};
  std::vector<std::string> error_messages_; // of the codes 1, 2, ...
};

} // namespace puone::sim
