// SPDX-License-Identifier: BSD-3-Clause
// Whether torch allows TF32.
#pragma once

#include <ATen/Context.h>

namespace puone {

// Whether factors of float32 may be rounded to TF32. torch has settings for CUDA and for oneDNN.
// What both allow was asked of all devices: by torch.set_float32_matmul_precision, or
// torch.backends.fp32_precision.
inline bool allowsTf32(at::Float32Op operation) {
  const auto allows = [operation](at::Float32Backend backend) {
    const auto precision = at::globalContext().float32Precision(backend, operation);
    return precision == at::Float32Precision::TF32 || precision == at::Float32Precision::BF16;
  };
  return allows(at::Float32Backend::CUDA) && allows(at::Float32Backend::MKLDNN);
}

} // namespace puone
