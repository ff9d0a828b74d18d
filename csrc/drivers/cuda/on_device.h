// SPDX-License-Identifier: BSD-3-Clause
// Makes a device current for CUDA while native calls need it. The HAL's current device is another
// thing: this one also belongs to whoever else uses CUDA in the process, and is given back.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "drivers/cuda/status.h"

namespace puone::cuda {

class OnDevice {
 public:
  explicit OnDevice(int32_t device) {
    check("cudaGetDevice", cudaGetDevice(&before_));
    changed_ = before_ != device;
    if (changed_) check("cudaSetDevice", cudaSetDevice(device));
  }
  ~OnDevice() {
    if (changed_) note("cudaSetDevice", cudaSetDevice(before_));
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
};

} // namespace puone::cuda
