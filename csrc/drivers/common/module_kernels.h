// SPDX-License-Identifier: BSD-3-Clause
// The kernels that find() has given of one module.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "drivers/common/error.h"
#include "drivers/common/generated_kernel.h"
#include "drivers/common/named_kernel.h"
#include "hal/module.h"

namespace puone {

/// Not thread-safe. The handles point into it.
class ModuleKernels {
 public:
  using Run = void (*)(kernels::Launch& launch, const void* args);

  /// The handle of one more kernel. `name` is its name, valid until the driver ends.
  puone_kernel add(
      const puone_module_kernel& declared,
      const char* name,
      Run run,
      const void* native = nullptr) {
    constexpr uint64_t kAnyType = ~uint64_t{0};
    const GeneratedKernel& generated = generated_.emplace_back(declared, use_, native);
    const NamedKernel& kernel = kernels_.emplace_back(
        NamedKernel{
            {name, 1, kAnyType, declared.args_size, run},
            std::string("kernel ") + name,
            &generated});
    return reinterpret_cast<puone_kernel>(&kernel);
  }

  /// Whether anything but the kernels shares what GeneratedKernel::module() gives.
  bool areShared() const {
    return use_.use_count() > 1 + static_cast<long>(generated_.size());
  }

 private:
  const std::shared_ptr<const void> use_ = std::make_shared<char>();
  std::deque<GeneratedKernel> generated_; // whose elements do not move, as those below
  std::deque<NamedKernel> kernels_;
};

/// The argument struct in a source and that of its caller are the same, or Error(INVALID_ARGUMENT).
inline void checkArgsSize(const puone_module_kernel& declared, size_t in_source) {
  if (declared.args_size == in_source) return;
  fail(
      PUONE_INVALID_ARGUMENT,
      "the arguments of kernel %.100s have %zu bytes in the source, not %llu",
      declared.name,
      in_source,
      static_cast<unsigned long long>(declared.args_size));
}

/// What find() was given. Throws Error(UNSUPPORTED) for another kernel.
inline const puone_module_kernel& declarationOf(puone_kernel kernel) {
  const GeneratedKernel* generated = kernelOf(kernel).generated;
  if (generated == nullptr) {
    fail(PUONE_UNSUPPORTED, "%s is not of a module", kernelOf(kernel).name.c_str());
  }
  return generated->declaration();
}

} // namespace puone
