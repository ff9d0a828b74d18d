// SPDX-License-Identifier: BSD-3-Clause
// The sizes of the contract's element types.
#pragma once

#include <cstdint>

namespace puone {

/// Bytes of an element, by puone_dtype (kernels/args.h, which is generated from kernels.yaml).
constexpr uint8_t kElementBytes[] = {1, 1, 1, 2, 4, 8, 2, 4, 8, 2, 2, 4, 8, 4, 8, 16};

} // namespace puone
