// SPDX-License-Identifier: BSD-3-Clause
// How a synchronisation learns of the errors that device code raises.
//
// Every native stream, and every graph, has one record in pinned memory that device code writes to.
// The code written there names the message and when the launch was: 12 bits of message and 20 of a
// ticket that counts the launches which may raise one. That is enough to tell which of several
// is the oldest, and whether an event covers one.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kernels/device_error.h"

namespace puone::cuda {

using Ticket = uint32_t; // the low kTicketBits count, modulo

/// Which of two tickets was drawn first, if both are recent.
bool isBefore(Ticket a, Ticket b);
/// Whether `a` was drawn after `b`, though not long after: tickets of work that was queued while a
/// synchronisation up to `b` went on.
bool isAfter(Ticket a, Ticket b);

struct Failure {
  Ticket ticket;
  kernels::ErrorRecord* record; // to be cleared when this has been reported
  std::string text;
};

class DeviceErrors {
 public:
  DeviceErrors() = default;
  ~DeviceErrors();
  DeviceErrors(const DeviceErrors&) = delete;
  DeviceErrors& operator=(const DeviceErrors&) = delete;

  /// A zeroed record that every device can write to. Thread-safe, like all members.
  kernels::ErrorRecord* take();
  void give(kernels::ErrorRecord* record);

  /// The code that a launch of `kernel` raises for `message`, with a fresh ticket.
  uint32_t code(const std::string& kernel, std::string_view message);
  /// A fresh ticket, and the one drawn last.
  Ticket draw() {
    return tickets_.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  Ticket latest() const {
    return tickets_.load(std::memory_order_relaxed);
  }

  /// The failure in the record, if any. Call it only when the work that may write to it is
  /// complete.
  std::optional<Failure> read(kernels::ErrorRecord& record) const;

 private:
  mutable std::mutex mutex_;
  std::vector<kernels::ErrorRecord*> slabs_;
  std::vector<kernels::ErrorRecord*> free_;
  std::vector<std::string> messages_; // "kernel NAME: message", by number - 1
  std::unordered_map<std::string, uint32_t> numbers_;
  std::atomic<Ticket> tickets_{0};
};

/// A record of its own, given back at the end.
class ErrorCell {
 public:
  explicit ErrorCell(DeviceErrors& errors) : errors_(errors), record_(errors.take()) {}
  ~ErrorCell() {
    errors_.give(record_);
  }
  ErrorCell(const ErrorCell&) = delete;
  ErrorCell& operator=(const ErrorCell&) = delete;

  kernels::ErrorRecord& record() const {
    return *record_;
  }
  bool isRaised() const {
    return *static_cast<const volatile uint32_t*>(&record_->code) != 0;
  }
  std::optional<Failure> read() const {
    return isRaised() ? errors_.read(*record_) : std::nullopt;
  }
  DeviceErrors& errors() const {
    return errors_;
  }

 private:
  DeviceErrors& errors_;
  kernels::ErrorRecord* const record_;
};

} // namespace puone::cuda
