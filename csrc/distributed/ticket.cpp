// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/ticket.h"

#include "runtime/driver.h"

namespace puone::distributed {

void Ticket::give() noexcept {
  {
    const std::lock_guard lock(mutex_);
    given_ = true;
  }
  given_condition_.notify_all();
}

void Ticket::take() {
  std::unique_lock lock(mutex_);
  given_condition_.wait(lock, [this] { return given_; });
}

void queueTake(const std::shared_ptr<Ticket>& ticket, const Stream& stream) {
  // The driver does not call the function after an error of the stream: then this is never deleted.
  auto held = std::make_unique<std::shared_ptr<Ticket>>(ticket);
  const puone_host_func take = [](void* user_data) {
    const std::unique_ptr<std::shared_ptr<Ticket>> mine(
        static_cast<std::shared_ptr<Ticket>*>(user_data));
    (*mine)->take();
  };
  PUONE_CHECK(hal().stream_host_func(stream.handle(), take, held.get()));
  held.release();
}

} // namespace puone::distributed
