// SPDX-License-Identifier: BSD-3-Clause
// Random operators that run on the host draw from the device's generator: what they return is a
// function of its (seed, offset) and of nothing else, and the CPU's own generator does not move.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>
#include <c10/core/TensorImpl.h>

#include <optional>

namespace puone {

// A CPU generator for one operator call. It stands for `generator`, which must be of `device`, or
// for the device's default generator, and advances it.
at::Generator hostGenerator(const std::optional<at::Generator>& generator, c10::Device device);

// For operators that take no generator: lets the CPU's default generator continue from the device's
// for a scope and then puts its own state back.
class DefaultGeneratorScope {
 public:
  explicit DefaultGeneratorScope(c10::Device device);
  ~DefaultGeneratorScope();
  DefaultGeneratorScope(const DefaultGeneratorScope&) = delete;
  DefaultGeneratorScope& operator=(const DefaultGeneratorScope&) = delete;

 private:
  c10::intrusive_ptr<c10::TensorImpl> saved_;
};

} // namespace puone
