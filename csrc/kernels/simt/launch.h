// SPDX-License-Identifier: BSD-3-Clause
// A launch on a device: a kernel's entry function runs on the host, in the thread that calls the
// driver, and starts device code on a stream. It must not wait for the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/device_error.h"
#include "kernels/library_convolution.h"
#include "kernels/matrix_product.h"

namespace puone::kernels {

class Launch {
 public:
  /// Device addresses are addresses.
  unsigned char* resolve(void* device_address) const {
    return static_cast<unsigned char*>(device_address);
  }

  /// The native stream on which everything runs.
  virtual void* stream() const = 0;
  /// Multiprocessors of the stream's device.
  virtual int32_t multiprocessors() const = 0;

  /// Temporary device memory for the kernels of this launch, aligned to 256 bytes, uninitialised.
  /// The driver frees it in stream order. Throws what the driver reports as OUT_OF_MEMORY.
  virtual void* scratch(size_t bytes) = 0;

  /// Whether the vendor's library is available and should compute this product.
  virtual bool multiplies(const MatrixProduct& /*product*/) {
    return false;
  }
  /// Queues the product by the library. Returns false if it cannot; then nothing was queued.
  virtual bool multiply(const MatrixProduct& /*product*/) {
    return false;
  }

  /// Queues the convolution by the vendor's library. Returns false if there is none that can; then
  /// nothing was queued.
  virtual bool convolve(const LibraryConvolution& /*convolution*/) {
    return false;
  }

  /// An error that device code may raise; deviceErrorText() documents `message`. Only the first one
  /// of a launch is reported.
  virtual DeviceError deviceError(std::string_view message) = 0;

  /// The work of this launch takes at least `ns` nanoseconds.
  virtual void delay(uint64_t ns) = 0;

 protected:
  ~Launch() = default;
};

} // namespace puone::kernels
