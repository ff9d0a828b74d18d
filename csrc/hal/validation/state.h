// SPDX-License-Identifier: BSD-3-Clause
// What the validation layer knows of the driver that it wraps. The files of this folder are private
// to the layer. Each library that validates compiles them and hides their symbols, and so has a
// state of its own.
#pragma once

#include <atomic>
#include <cstdint>

#include "hal/entries.h"
#include "hal/hal.h"

namespace puone::validation {

inline const puone_hal_api* driver = nullptr; // what is wrapped; set once
inline uint64_t capabilities = 0;             // that it declares; set once
inline bool knows_own_memory_only = false;    // the parameter of validated(); set once

inline std::atomic<bool> running{false}; // between init() and shutdown()

/// The number of devices, which does not change while it runs; -1: not asked yet.
inline std::atomic<int32_t> known_count{-1};

/// Whether the driver promises the entries of these capabilities.
inline bool has(uint64_t wanted) {
  return isPromised(capabilities, wanted);
}

} // namespace puone::validation
