// SPDX-License-Identifier: BSD-3-Clause
// Storages that several processes use: the runtime's part of torch.multiprocessing.
//
// The sender waits for the work of the device and names the segment that the storage lies in
// (extension "ipc" of the HAL), the place in it, and a ticket (reference_slots.h). It keeps the
// storage until the receiver is done. The receiver maps each segment once and makes a storage of
// the place; when that dies, it waits for the work of the device before it gives the ticket back.
// A storage that was received can be sent on: the message then names the first sender's segment,
// and the process in between keeps what it has until the next receiver is done.
#pragma once

#include <c10/core/Storage.h>

#include "hal/ipc.h"
#include "runtime/reference_slots.h"

namespace puone {

// Plain data. Two messages about one storage have equal places.
struct StoragePlace {
  puone_ipc_memory_handle segment; // the block of device memory
  uint64_t offset;                 // from the segment's start, in bytes
  uint64_t bytes;                  // of the storage
  uint64_t device;                 // index
};

// What one process sends another about a storage; good for one receiveStorage().
struct StorageMessage {
  StoragePlace place;            // where it is
  ReferenceSlots::Ticket ticket; // the receiver's reference, which keeps the storage alive
};

// Thread-safe, as all functions below. Waits for the device; call without the GIL. The storage has
// bytes, and cannot be resized from then on. Throws NotImplementedError if the driver has no such
// extension, and where hal() does.
StorageMessage sendStorage(const c10::Storage& storage);

// A storage on the sender's memory. Not for the process that made the message, which has the
// storage. Throws c10::Error if the sender has ended or the message was received before.
c10::Storage receiveStorage(const StorageMessage& message);

// Instead of receiveStorage(), by a process that has a storage of this place.
void acknowledge(const StorageMessage& message);

// Releases what receivers are done with, also those that have died. Whether there was something.
// Holds no lock while storages die.
bool collectSentStorages();

} // namespace puone
