// SPDX-License-Identifier: BSD-3-Clause
// Operators that draw random numbers and run on the host: what they draw is a function only of the
// device generator's (seed, offset), and the CPU's own generator is not advanced.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>

#include <mutex>
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

// Replaces the CPU's default generator during its lifetime, for an operator that draws without a
// generator argument, such as native_dropout. Only one exists at a time; other threads wait. A
// thread that draws from the default generator meanwhile gets numbers of this one.
class AsDefaultGenerator {
 public:
  explicit AsDefaultGenerator(const at::Generator& generator);
  ~AsDefaultGenerator();
  AsDefaultGenerator(const AsDefaultGenerator&) = delete;
  AsDefaultGenerator& operator=(const AsDefaultGenerator&) = delete;

 private:
  std::unique_lock<std::mutex> only_one_;
  at::Generator generator_;
};

} // namespace puone
