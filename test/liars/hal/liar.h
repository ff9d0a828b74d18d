// SPDX-License-Identifier: BSD-3-Clause
// A lying driver: it wraps another driver's table and breaks one entry, so that the test suites can
// be tested. A lie is a function that replaces entries of a copy of the true table; the replacement
// reaches the wrapped driver through truth(). One lie per process, chosen by PUONE_LIAR.
#pragma once

#include <span>

#include "hal/hal.h"

namespace puone::liar {

struct Lie {
  const char* id; // the value of PUONE_LIAR, and the key in liars.yaml
  void (*tell)(puone_hal_api& table);
};

/// Every lie, in the order of liars.yaml. The first, "none", changes nothing.
std::span<const Lie> lies();

/// Lies about the one symbol itself, set by those that tell them.
struct Symbol {
  bool accepts_any_abi = false;
  bool copies_for_each_thread = false;
};
Symbol& symbol();

/// The wrapped driver's own table. Valid once puone_hal_get() has returned OK.
const puone_hal_api& truth();

/// What the wrapped driver knows of a pointer.
inline puone_pointer_attributes attributesOf(const void* pointer) {
  puone_pointer_attributes found{};
  found.struct_size = sizeof found;
  truth().pointer_attributes(pointer, &found);
  return found;
}

// Lies about drivers.
void tableIsTooShort(puone_hal_api& table);
void tableForAnyAbi(puone_hal_api& table);
void tableOfEachThread(puone_hal_api& table);
void capabilityIsHidden(puone_hal_api& table);
void nameIsForPeople(puone_hal_api& table);
void extensionsAreMissing(puone_hal_api& table);
void secondInitFails(puone_hal_api& table);
void countingStartsTheDevice(puone_hal_api& table);
void shutdownDoesNothing(puone_hal_api& table);
void shutdownWaitsInChildren(puone_hal_api& table);
void errorsHaveNoText(puone_hal_api& table);
void failuresClearTheirResult(puone_hal_api& table);
void nullResultsCrash(puone_hal_api& table);
void structsAreOverrun(puone_hal_api& table);
void extensionVersionsAreIgnored(puone_hal_api& table);

// Lies about devices.
void deviceSynchronizeDoesNothing(puone_hal_api& table);
void everythingIsOnDevice0(puone_hal_api& table);
void countIsOneTooHigh(puone_hal_api& table);
void thereIsNoDevice(puone_hal_api& table);
void countChanges(puone_hal_api& table);
void indicesWrap(puone_hal_api& table);
void propertiesAreZero(puone_hal_api& table);
void waitingIsForAllDevices(puone_hal_api& table);
void prioritiesAreReversed(puone_hal_api& table);
void devicesAreNotTheirOwnPeers(puone_hal_api& table);

// Lies about memory.
void allocationIsReportedOnDevice0(puone_hal_api& table);
void deviceMemoryIsOpenToTheHost(puone_hal_api& table);
void freeNeverUnmaps(puone_hal_api& table);
void memcpyCopiesNothing(puone_hal_api& table);
void pinnedMemoryIsNotPinned(puone_hal_api& table);

// Lies about blocks.
void blocksAreMisaligned(puone_hal_api& table);
void liveBlocksAreGivenAgain(puone_hal_api& table);
void threadsShareBlocks(puone_hal_api& table);
void nothingIsAllocated(puone_hal_api& table);
void runningOutIsAnInternalError(puone_hal_api& table);
void anythingCanBeFreed(puone_hal_api& table);
void freeDoesNotWait(puone_hal_api& table);
void anythingPinnedCanBeFreed(puone_hal_api& table);
void hostFreeDoesNotWait(puone_hal_api& table);
void onlyTheStartIsKnown(puone_hal_api& table);
void freeMemoryIsAConstant(puone_hal_api& table);

// Lies about copies.
void copiesStopShort(puone_hal_api& table);
void emptyCopiesAreRefused(puone_hal_api& table);
void rangesAreNotChecked(puone_hal_api& table);
void copiesAlwaysWait(puone_hal_api& table);
void memsetRefusesHighBits(puone_hal_api& table);
void peersReceiveNothing(puone_hal_api& table);

// Lies about streams.
void streamQueryIsAlwaysTrue(puone_hal_api& table);
void streamQueryIsNeverTrue(puone_hal_api& table);
void streamSynchronizeDoesNothing(puone_hal_api& table);
void waitEventDoesNothing(puone_hal_api& table);
void oneWaitInFourIsForgotten(puone_hal_api& table);
void streamsAreOneAndTheSame(puone_hal_api& table);
void streamsWaitForTheDevice(puone_hal_api& table);
void hostFunctionsAreDropped(puone_hal_api& table);
void nativeHandlesChange(puone_hal_api& table);
void noStreamCannotBeDestroyed(puone_hal_api& table);
void streamsLeaveThreads(puone_hal_api& table);
void noStreamIsIdle(puone_hal_api& table);
void nativeStreamsAreNotShared(puone_hal_api& table);

// Lies about events.
void elapsedIsConstant(puone_hal_api& table);
void eventsCompleteAtOnce(puone_hal_api& table);
void eventSynchronizeDoesNothing(puone_hal_api& table);
void recordingWaits(puone_hal_api& table);
void newEventsArePending(puone_hal_api& table);
void newEventsCannotBeWaitedFor(puone_hal_api& table);
void firstRecordCounts(puone_hal_api& table);
void unknownFlagsAreIgnored(puone_hal_api& table);
void eventsBelongToNoDevice(puone_hal_api& table);
void elapsedIsAlwaysKnown(puone_hal_api& table);
void elapsedIsInSeconds(puone_hal_api& table);
void eventsLeaveFiles(puone_hal_api& table);

// Lies about order.
void tasksRunInReverse(puone_hal_api& table);
void argumentsAreReadLate(puone_hal_api& table);

// Lies about kernels.
void anyKernelIsFound(puone_hal_api& table);
void kernelsAreNotDescribed(puone_hal_api& table);
void kernelSizesAreNotChecked(puone_hal_api& table);
void fillDoesNothing(puone_hal_api& table);
void copyBitsDoesNothing(puone_hal_api& table);
void castsDoNothing(puone_hal_api& table);
void delayDoesNotWait(puone_hal_api& table);
void kernelsRefusePeers(puone_hal_api& table);
void threadsLoseWork(puone_hal_api& table);

// Lies about the extension "fault".
void memoryNeverRunsOutOnRequest(puone_hal_api& table);
void kernelErrorsAreSwallowed(puone_hal_api& table);
void devicesAreNeverLost(puone_hal_api& table);
void allDevicesAreLostAtOnce(puone_hal_api& table);
void thereIsNoLatency(puone_hal_api& table);

// Lies about the extension "origin".
void theLastWorkFailed(puone_hal_api& table);
void graphsForgetOrigins(puone_hal_api& table);

// Lies about the extension "ipc".
void openedMemoryIsACopy(puone_hal_api& table);
void handlesHaveNumbers(puone_hal_api& table);
void openedMemoryIsOfWholePages(puone_hal_api& table);
void ownHandlesAreOpened(puone_hal_api& table);
void closingDoesNothing(puone_hal_api& table);

// Lies about the extension "module".
void compilersAreSilent(puone_hal_api& table);
void modulesAreOnDevice0(puone_hal_api& table);
void damagedImagesAreLoaded(puone_hal_api& table);
void sizesOfArgumentsAreIgnored(puone_hal_api& table);
void generatedKernelsJumpTheQueue(puone_hal_api& table);
void errorsOfGeneratedKernelsAreLost(puone_hal_api& table);
void graphsLackGeneratedKernels(puone_hal_api& table);
void unloadingDoesNotWait(puone_hal_api& table);

} // namespace puone::liar
