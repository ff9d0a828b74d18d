// SPDX-License-Identifier: BSD-3-Clause
// The number that the calling thread gives to the work it queues, so that it recognises work that
// failed (hal/origin.h).
#pragma once

#include <cstdint>

namespace puone {

struct Origin {
  static inline thread_local uint64_t current = 0; // of work that is queued now
};

} // namespace puone
