// SPDX-License-Identifier: BSD-3-Clause
#include "liar.h"

namespace puone::liar {
namespace {

void tellTheTruth(puone_hal_api&) {}

constexpr Lie kLies[] = {
    {"none", tellTheTruth},
    {"wait_event_does_nothing", waitEventDoesNothing},
    {"events_complete_at_once", eventsCompleteAtOnce},
    {"device_synchronize_does_nothing", deviceSynchronizeDoesNothing},
    {"query_always_true", streamQueryIsAlwaysTrue},
    {"elapsed_constant", elapsedIsConstant},
    {"memcpy_copies_nothing", memcpyCopiesNothing},
    {"no_memory_protection", deviceMemoryIsOpenToTheHost},
    {"allocation_reported_on_device_0", allocationIsReportedOnDevice0},
    {"current_device_process_wide", currentDeviceIsProcessWide},
    {"free_never_unmaps", freeNeverUnmaps},
    {"event_synchronize_does_nothing", eventSynchronizeDoesNothing},
    {"stream_synchronize_does_nothing", streamSynchronizeDoesNothing},
    {"query_never_true", streamQueryIsNeverTrue},
    {"pinned_not_pinned", pinnedMemoryIsNotPinned},
    {"tasks_in_reverse_order", tasksRunInReverse},
};

} // namespace

std::span<const Lie> lies() {
  return kLies;
}

} // namespace puone::liar
