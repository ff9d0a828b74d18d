// SPDX-License-Identifier: BSD-3-Clause
// References across processes. The process that sends something owns a file in memory with a slot
// for each thing that is on its way or in use elsewhere; the receiver writes into the slot that it
// has it, and later that it is done. The owner looks at the slots when it needs memory. Nothing
// waits, and nothing is left behind: a receiver that has died is recognised by its process.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "hal/shared_file.h"

namespace puone {

// Which processes are alive, as found when it was asked first. For one look at many slots: each
// process takes a look into the file system.
class LivingProcesses {
 public:
  // What a slot says of the process that holds it.
  bool has(uint64_t holder);

 private:
  std::map<uint64_t, bool> known_;
};

// The slots of one process, as that process or another one sees them. Thread-safe.
class ReferenceSlots {
 public:
  static constexpr size_t kSlots = size_t{1} << 20; // 8 MiB, which take memory as they are used

  // What a message carries: it can be claimed once.
  struct Ticket {
    SharedFile::Name file;
    uint64_t slot;
    uint64_t number; // of the message, never used twice
  };

  // New slots of this process. Throws c10::Error if the system has no memory.
  static std::shared_ptr<ReferenceSlots> create();
  // Those of a ticket. Throws c10::Error if their process has ended. Open ones are shared.
  static std::shared_ptr<ReferenceSlots> open(const SharedFile::Name& name);

  ReferenceSlots(SharedFile file, std::atomic<uint64_t>* slots)
      : file_(std::move(file)), slots_(slots) {}
  ~ReferenceSlots();
  ReferenceSlots(const ReferenceSlots&) = delete;
  ReferenceSlots& operator=(const ReferenceSlots&) = delete;

  // ---- the owner ----

  // The slot is on its way from now on; it must be free.
  Ticket send(uint64_t slot);
  // Whether the receiver is done, or its process has ended.
  bool isReleased(uint64_t slot, LivingProcesses& living);

  // ---- the receiver ----

  // Takes what is on its way. Throws c10::Error if that was done before.
  void claim(const Ticket& ticket);
  // It is done.
  void release(uint64_t slot) noexcept;

 private:
  const SharedFile file_;
  std::atomic<uint64_t>* const slots_;
  std::atomic<uint64_t> next_number_{1};
};

} // namespace puone
