// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/event.h"

#include <c10/util/Exception.h>

#include "runtime/deferred_error.h"
#include "runtime/driver.h"

namespace puone {

Event::~Event() {
  if (handle_ == nullptr) {
    return;
  }
  if (const auto* api = halOrNull()) {
    api->event_destroy(handle_);
  }
}

// [quote: record]
void Event::record(const Stream& stream) {
  if (handle_ == nullptr) {
    PUONE_CHECK(hal().event_create(stream.deviceIndex(), flags_, &handle_));
    device_ = stream.deviceIndex();
  }
  TORCH_CHECK(
      device_ == stream.deviceIndex(),
      "event of puone:",
      static_cast<int>(device_),
      " cannot be recorded on a stream of ",
      stream.device());
  PUONE_CHECK(hal().event_record(handle_, stream.handle()));
}
// [end: record]

void Event::block(const Stream& stream) const {
  if (handle_ != nullptr) {
    PUONE_CHECK(hal().stream_wait_event(stream.handle(), handle_));
  }
}

bool Event::query() const {
  return handle_ == nullptr || isDone(hal().event_query(handle_), "event_query");
}

void Event::synchronize() const {
  if (handle_ != nullptr) {
    PUONE_CHECK(hal().event_synchronize(handle_));
    raiseDeferredError(device_);
  }
}

} // namespace puone
