// SPDX-License-Identifier: BSD-3-Clause
// Operators that take a generator and run on the host, which of PyTorch's own none does: what they
// draw is a function of the device generator's (seed, offset) and of nothing else, and the CPU's
// own generator does not move.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>

#include <optional>

namespace puone {

// One operator call's draw on the host. Its CPU generator stands for `generator`, which must be of
// `device`, or for the device's default generator, and advances it; but not if the operator then
// draws nothing, because it fills no elements or refuses its arguments.
class HostDraw {
 public:
  HostDraw(const std::optional<at::Generator>& generator, c10::Device device);
  ~HostDraw();
  HostDraw(const HostDraw&) = delete;
  HostDraw& operator=(const HostDraw&) = delete;

  const at::Generator& generator() const {
    return host_;
  }

 private:
  at::Generator host_;
  at::Generator device_;
  uint64_t seed_ = 0;
  uint64_t offset_ = 0;
};

} // namespace puone
