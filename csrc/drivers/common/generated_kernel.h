// SPDX-License-Identifier: BSD-3-Clause
// A kernel of a module: what was declared of it, and what a launch makes of its arguments.
#pragma once

#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "hal/module.h"

namespace puone {

class GeneratedKernel {
 public:
  /// Copies `declared`. Graphs that launch the kernel share `module`, so that the module can tell
  /// whether there is one. `native` is what the driver starts, if that is not a host's function.
  GeneratedKernel(
      const puone_module_kernel& declared, std::shared_ptr<const void> module, const void* native)
      : module_(std::move(module)), native_(native), declaration_(declared) {
    declaration_.struct_size = sizeof declaration_;
    declaration_.name = copied(declared.name);
    for (uint64_t i = 0; i < declared.access_count; ++i) {
      puone_module_access access = declared.accesses[i];
      access.name = copied(access.name);
      steps_.emplace_back(access.steps, access.steps + access.step_count);
      access.steps = steps_.back().data();
      accesses_.push_back(access);
    }
    declaration_.accesses = accesses_.data();
    for (uint32_t i = 0; i < declared.error_count; ++i) {
      errors_.push_back(copied(declared.errors[i]));
    }
    declaration_.errors = errors_.data();
  }
  GeneratedKernel(const GeneratedKernel&) = delete;
  GeneratedKernel& operator=(const GeneratedKernel&) = delete;

  const puone_module_kernel& declaration() const {
    return declaration_;
  }
  const std::shared_ptr<const void>& module() const {
    return module_;
  }
  const void* native() const {
    return native_;
  }

  /// Makes a launch's copy of the arguments ready for the code: addresses become those that the
  /// device uses, and errors are numbered. Throws what the launch throws.
  template <class Launch>
  void prepare(void* arguments, Launch& launch) const {
    auto* const bytes = static_cast<unsigned char*>(arguments);
    for (const puone_module_access& access : accesses_) {
      void* address;
      std::memcpy(&address, bytes + access.pointer, sizeof address);
      if (address == nullptr) continue;
      address = launch.resolve(address);
      std::memcpy(bytes + access.pointer, &address, sizeof address);
    }
    puone_module_arguments first;
    std::memcpy(&first, bytes, sizeof first);
    for (size_t i = 0; i < errors_.size(); ++i) {
      const auto error = launch.deviceError(errors_[i]);
      first.error = error.record;
      first.codes[i] = error.code;
    }
    std::memcpy(bytes, &first, sizeof first);
  }

 private:
  const char* copied(const char* text) {
    return texts_.emplace_back(text).c_str();
  }

  const std::shared_ptr<const void> module_;
  const void* const native_;
  puone_module_kernel declaration_;
  std::deque<std::string> texts_; // which do not move, as what points to them
  std::deque<std::vector<puone_module_step>> steps_;
  std::vector<puone_module_access> accesses_;
  std::vector<const char*> errors_;
};

} // namespace puone
