// SPDX-License-Identifier: BSD-3-Clause
// An event that owns its driver handle: created on first record, destroyed with the object. And the
// flag of a c10::Event, whose handle the guard makes, of a kind that c10 does not know.
#pragma once

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <utility>

#include "runtime/stream.h"

namespace puone {

// Of a c10::Event without timing whose synchronize() sleeps rather than spins. c10 measures between
// events of its BACKEND_DEFAULT alone, so events with timing always sleep.
constexpr auto kBlockingEvent = static_cast<c10::EventFlag>(16);

// Owns the driver's event. May be moved, not copied. Not thread-safe.
class Event {
 public:
  // `flags`: puone_event_flags. Creates nothing yet.
  explicit Event(uint32_t flags = PUONE_EVENT_DEFAULT) noexcept : flags_(flags) {}
  ~Event();
  Event(Event&& other) noexcept
      : flags_(other.flags_),
        device_(other.device_),
        handle_(std::exchange(other.handle_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(flags_, other.flags_);
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
    return *this;
  }

  // Marks the work queued on `stream` so far. Throws if the event belongs to another device.
  void record(const Stream& stream);

  // Later work of `stream` waits for the last record; no effect if there was none.
  void block(const Stream& stream) const;

  // True if the last record has completed or there was none.
  bool query() const;
  // Waits until the last record has completed. Throws the error of work that failed.
  void synchronize() const;

  // The driver's event; NULL before the first record.
  puone_event handle() const noexcept {
    return handle_;
  }

 private:
  uint32_t flags_;
  c10::DeviceIndex device_ = -1;
  puone_event handle_ = nullptr;
};

} // namespace puone
