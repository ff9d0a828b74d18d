// SPDX-License-Identifier: BSD-3-Clause
// A launch on a device: a kernel's entry function runs on the host, in the thread that calls the
// driver, and starts device code on a stream. It must not wait for the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/fault.h"
#include "kernels/matrix_product.h"

namespace puone::kernels {

class Launch {
 public:
  /// Device addresses are addresses.
  unsigned char* resolve(void* device_address) const {
    return static_cast<unsigned char*>(device_address);
  }

  /// The native stream, in whose order everything runs.
  virtual void* stream() const = 0;
  /// Multiprocessors of the stream's device.
  virtual int32_t multiprocessors() const = 0;

  /// Device memory for what this launch starts, aligned to 256 bytes, its contents undefined. The
  /// driver takes it back in stream order. Throws what the driver turns into OUT_OF_MEMORY.
  virtual void* scratch(size_t bytes) = 0;

  /// Whether the vendor's library can be had and is to be asked for this product.
  virtual bool multiplies(const MatrixProduct& /*product*/) {
    return false;
  }
  /// Asks it to queue the product; false: it cannot, nothing was queued.
  virtual bool multiply(const MatrixProduct& /*product*/) {
    return false;
  }

  /// A fault that device code may raise; faultText() says what `message` may hold. The first
  /// counts.
  virtual Fault fault(std::string_view message) = 0;

  /// What was started so far counts as finished no sooner than `ns` from its start on.
  virtual void delay(uint64_t ns) = 0;

 protected:
  ~Launch() = default;
};

} // namespace puone::kernels
