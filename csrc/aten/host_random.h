// SPDX-License-Identifier: BSD-3-Clause
// Random operators that run on the host draw from the device's generator: what they return is a
// function of its (seed, offset) and of nothing else, and the CPU's own generator does not move.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>
#include <c10/core/TensorImpl.h>

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

// For operators that take no generator: lets the CPU's default generator continue from the device's
// for a scope and then puts its own state back.
class DefaultGeneratorScope {
 public:
  explicit DefaultGeneratorScope(c10::Device device);
  ~DefaultGeneratorScope();
  DefaultGeneratorScope(const DefaultGeneratorScope&) = delete;
  DefaultGeneratorScope& operator=(const DefaultGeneratorScope&) = delete;

 private:
  HostDraw draw_;
  c10::intrusive_ptr<c10::TensorImpl> saved_;
};

} // namespace puone
