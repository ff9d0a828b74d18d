// SPDX-License-Identifier: BSD-3-Clause
// Whether torch allows TF32.
#pragma once

#include <cstdint>

#include <ATen/Context.h>

#include "kernels/args.h"

namespace puone {

// Whether factors of this dtype, a puone_dtype, may be rounded to TF32: of float32 alone. torch has
// settings for CUDA and for oneDNN. What both allow was asked of all devices: by
// torch.set_float32_matmul_precision, or torch.backends.fp32_precision.
inline bool allowsTf32(int32_t dtype, at::Float32Op operation) {
  if (dtype != PUONE_FLOAT32) return false;
  const auto allows = [operation](at::Float32Backend backend) {
    const auto precision = at::globalContext().float32Precision(backend, operation);
    return precision == at::Float32Precision::TF32 || precision == at::Float32Precision::BF16;
  };
  return allows(at::Float32Backend::CUDA) && allows(at::Float32Backend::MKLDNN);
}

} // namespace puone
