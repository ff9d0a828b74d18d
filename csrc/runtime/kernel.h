// SPDX-License-Identifier: BSD-3-Clause
// Handles of the kernels that the driver may have. A kernel is looked up in the driver at the first
// question about it; from then on a question costs one load. Everything here is thread-safe.
//
// runtime/kernels.h, generated from hal/kernels.yaml, has a handle for each kernel:
//
//   if (!kernel::gemm.supports(PUONE_FLOAT32)) return fallBack...;
//   kernel::gemm.launch(args, stream); // args: puone_gemm_args
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "hal/hal.h"
#include "kernels/args.h"
#include "runtime/stream.h"

namespace puone {

// A kernel without the type of its arguments.
class KernelBase {
 public:
  // `name` must outlive the handle. A driver that implements another version of the kernel's
  // contract counts as lacking the kernel.
  constexpr KernelBase(const char* name, uint32_t version) noexcept
      : name_(name), version_(version) {}
  KernelBase(const KernelBase&) = delete;
  KernelBase& operator=(const KernelBase&) = delete;

  // As in the kernel contract.
  const char* name() const noexcept {
    return name_;
  }

  // Whether the driver has the kernel. Throws c10::Error where hal() does.
  bool available() const {
    return found().handle != nullptr;
  }

  // Whether the driver has the kernel and it takes elements of this type; always true of a kernel
  // without element type. hal/kernels.yaml says which of an operator's types is asked for. Throws
  // c10::Error where hal() does.
  bool supports(puone_dtype type) const {
    return (found().element_types >> type & 1) != 0;
  }

 protected:
  // Throws c10::NotImplementedError if the driver lacks the kernel, or what a failed launch means.
  void launchBytes(const void* args, size_t bytes, const Stream& stream) const;

 private:
  struct Found {
    puone_kernel handle;
    uint64_t element_types;
  };

  Found found() const {
    if (!known_.load(std::memory_order_acquire)) [[unlikely]] {
      find();
    }
    return {
        handle_.load(std::memory_order_relaxed), element_types_.load(std::memory_order_relaxed)};
  }
  // Asks the driver. Two threads that do so at once find the same.
  void find() const;
  [[noreturn]] void throwMissing() const;

  const char* name_;
  uint32_t version_;
  mutable std::atomic<bool> known_{false};
  mutable std::atomic<puone_kernel> handle_{nullptr}; // null: the driver lacks it
  mutable std::atomic<uint64_t> element_types_{0};
};

// Queues a kernel, with the stream's workspace. `args` is copied before this returns. Throws what a
// failed launch means.
void launchKernel(puone_kernel kernel, const void* args, size_t bytes, const Stream& stream);

namespace kernel {

// The kernel of that name, which takes an Args.
template <class Args>
class Kernel : public KernelBase {
 public:
  using KernelBase::KernelBase;

  // Queues the kernel on the stream. `args` is copied before this returns. Throws
  // c10::NotImplementedError if the driver lacks the kernel.
  void launch(const Args& args, const Stream& stream) const {
    launchBytes(&args, sizeof(Args), stream);
  }
};

} // namespace kernel
} // namespace puone
