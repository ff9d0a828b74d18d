// SPDX-License-Identifier: BSD-3-Clause
// The plans of all operators that fell back, and how often each did.
#pragma once

#include "aten/core/fallback_plan.h"

namespace puone {

// The operator's plan; counts one call. The reference is valid until the operator is deregistered.
const FallbackPlan& bookFallback(const c10::OperatorHandle& op);

} // namespace puone
