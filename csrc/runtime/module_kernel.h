// SPDX-License-Identifier: BSD-3-Clause
// Kernels that are compiled while the program runs (hal/module.h), for generators of code: sources
// become images, and images kernels that are launched like the driver's own.
#pragma once

#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "hal/module.h"
#include "runtime/stream.h"

namespace puone {

// What images for a device are compiled for; device -1: for none in particular, which needs no
// device. Throws c10::NotImplementedError if the driver compiles nothing, or finds no compiler.
puone_module_target moduleTarget(c10::DeviceIndex device);

// The image of `source` for the target of that name. Takes as long as a compiler. Throws c10::Error
// with the compiler's text if the source does not compile. Thread-safe.
std::string compileModule(const std::string& source, const std::string& target, bool contracts);

// One argument of a module's kernel: 8 bytes behind those before it, the first one behind
// puone_module_arguments.
struct ModuleParameter {
  // What kind of argument it is.
  enum class Kind : uint8_t {
    kBuffer,  // an address. Its extent, the number of elements from the first to past the last, is
              // an int64_t behind all parameters, in their order
    kInteger, // int64_t
    kReal,    // double
  };
  std::string name;     // for people
  Kind kind;            // decides what the 8 bytes are
  uint32_t access = 0;  // of a buffer: puone_module_access_flags
  uint32_t element = 0; // of a buffer: bytes of an element
};

// A kernel of an image, on every device: it is loaded where it is launched first, and stays loaded.
class ModuleKernel {
 public:
  // `errors`: texts, as in puone_module_kernel.
  ModuleKernel(
      std::string image,
      std::string name,
      std::vector<ModuleParameter> parameters,
      std::vector<std::string> errors);
  ModuleKernel(const ModuleKernel&) = delete;
  ModuleKernel& operator=(const ModuleKernel&) = delete;

  // As in the source.
  const std::string& name() const {
    return name_;
  }
  // In the order of the argument struct.
  c10::ArrayRef<ModuleParameter> parameters() const {
    return parameters_;
  }

  // Queues `count` indices of a map, or blocks that handle `work` elements each. `values` has a
  // value for each parameter and then the extents. Thread-safe. Throws what a failed launch means.
  void launch(
      const Stream& stream, int64_t count, int64_t work, c10::ArrayRef<uint64_t> values) const;

 private:
  puone_kernel loadedOn(c10::DeviceIndex device) const;
  puone_kernel load(c10::DeviceIndex device) const;

  const std::string image_;
  const std::string name_;
  const std::vector<ModuleParameter> parameters_;
  const std::vector<std::string> errors_;
  mutable std::mutex mutex_;
  mutable std::map<c10::DeviceIndex, puone_kernel> loaded_;
};

} // namespace puone
