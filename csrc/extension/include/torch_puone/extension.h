// SPDX-License-Identifier: BSD-3-Clause
// For C++ extensions: kernels of an extension's own device sources, which are written in the
// dialect of csrc/kernels/module.h and compiled for the active driver at their first launch.
// torch_puone.cpp_extension builds such extensions; docs/integration/extensions.md has an example.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace puone::extension {

// The device sources of this extension, as one text. The builder defines it, once in each
// extension.
extern const char* const kDeviceSource __attribute__((visibility("hidden")));

// What a kernel does with a tensor: with all of its elements, for the sanitizer. Of a larger
// tensor, pass the part that the kernel uses.
enum class Access : uint8_t {
  kRead = 1,     // it only reads
  kWrite = 2,    // it writes without reading first
  kReadWrite = 3 // both
};

// An argument of a launch: a tensor, which is an address in the argument struct, a whole number,
// which is an int64_t, or another one, which is a double.
class Argument {
 public:
  // A number; implicit.
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, bool> = true>
  Argument(T value) // NOLINT(google-explicit-constructor): numbers are arguments
      : is_real_(std::is_floating_point_v<T>),
        integer_(static_cast<int64_t>(std::is_floating_point_v<T> ? 0 : value)),
        real_(static_cast<double>(value)) {}
  // A tensor, which this keeps alive.
  Argument(at::Tensor tensor, Access access)
      : is_tensor_(true), tensor_(std::move(tensor)), access_(access) {}

  // Whether it is a tensor.
  bool isTensor() const {
    return is_tensor_;
  }
  // The tensor; undefined for a number.
  const at::Tensor& tensor() const {
    return tensor_;
  }
  // What the kernel does with the tensor.
  Access access() const {
    return access_;
  }
  // Whether it is a number of a floating type.
  bool isReal() const {
    return is_real_;
  }
  // A whole number; 0 for anything else.
  int64_t integer() const {
    return integer_;
  }
  // The number as a double; 0 for a tensor.
  double real() const {
    return real_;
  }

 private:
  bool is_tensor_ = false;
  at::Tensor tensor_;
  Access access_ = Access::kRead;
  bool is_real_ = false;
  int64_t integer_ = 0;
  double real_ = 0;
};

// An argument that the kernel reads.
inline Argument read(const at::Tensor& tensor) {
  return {tensor, Access::kRead};
}
// An argument that the kernel writes without reading it first.
inline Argument write(const at::Tensor& tensor) {
  return {tensor, Access::kWrite};
}
// An argument that the kernel reads and writes.
inline Argument readWrite(const at::Tensor& tensor) {
  return {tensor, Access::kReadWrite};
}

// The kernel `name` of the device sources. Its argument struct has, in this order: `Arguments`; 8
// bytes for each argument; an int64_t for each tensor, the number of elements from its first to
// past its last one. Thread-safe; usually a static of the function that launches it.
class Kernel {
 public:
  // `errors`: texts of the errors that the kernel raises, at most 4; up to two "{}" in a text are
  // replaced by the numbers that the kernel raises with it.
  explicit Kernel(
      std::string name, std::vector<std::string> errors = {}, const char* source = kDeviceSource);
  ~Kernel();
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  // Queues `count` calls of a PUONE_MODULE_MAP on the current stream of the tensors' device. The
  // first launch compiles the kernel. Throws c10::Error if a tensor is undefined or on another
  // device, if one that is read is negated or conjugated, or if the sources do not compile: then
  // with the compiler's text; c10::NotImplementedError if the driver cannot compile.
  void map(int64_t count, std::initializer_list<Argument> arguments) const;

  // Likewise `count` blocks of a PUONE_MODULE_BLOCKS, each of which handles about `work` elements.
  void blocks(int64_t count, int64_t work, std::initializer_list<Argument> arguments) const;

 private:
  struct Compiled;
  void launch(int64_t count, int64_t work, std::initializer_list<Argument> arguments) const;

  const std::unique_ptr<Compiled> compiled_;
};

} // namespace puone::extension
