// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/pending_frees.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "runtime/driver.h"

namespace puone {
namespace {

UseStatus withError(puone_status status, const char* entry) {
  if (status == PUONE_OK || status == PUONE_NOT_READY) {
    return {status, nullptr};
  }
  try {
    detail::throwStatus(status, entry);
  } catch (...) {
    return {status, std::current_exception()};
  }
}

} // namespace

bool isAsynchronousError(puone_status status) noexcept {
  return status == PUONE_INTERNAL || status == PUONE_OUT_OF_MEMORY;
}

void warnHeld(const std::exception_ptr& error) {
  std::string reason = "unknown error";
  try {
    std::rethrow_exception(error);
  } catch (const c10::Error& e) {
    reason = e.what_without_backtrace();
  } catch (const std::exception& e) {
    reason = e.what();
  }
  TORCH_WARN_ONCE(
      "puone: memory is not reused because its last use on another stream cannot be tracked; "
      "empty_cache() tries again: ",
      reason);
}

Event PendingFrees::newEvent() {
  if (idle_events_.empty()) {
    return Event();
  }
  Event event = std::move(idle_events_.back());
  idle_events_.pop_back();
  return event;
}

PendingFrees::Queue& PendingFrees::queueOf(const Stream& user) {
  for (Queue& queue : queues_) {
    if (queue.user == user) {
      return queue;
    }
  }
  return queues_.emplace_back(Queue{user, {}});
}

void PendingFrees::add(PendingUse use) {
  Queue& queue = queueOf(use.user);
  queue.uses.push_back(std::move(use));
  ++count_;
}

void PendingFrees::hold(Block* block, const Stream& user) {
  if (block->untracked.empty()) {
    held_.push_back(block);
  }
  block->untracked.push_back(user.id());
  --block->pending_events;
}

std::exception_ptr PendingFrees::poll(std::vector<Block*>& reusable) {
  std::exception_ptr error;
  for (Queue& queue : queues_) {
    while (!queue.uses.empty()) {
      const Event& event = queue.uses.front().event;
      const UseStatus status = withError(hal().event_query(event.handle()), "event_query");
      if (status.status == PUONE_NOT_READY) {
        break;
      }
      PendingUse use = std::move(queue.uses.front());
      queue.uses.pop_front();
      --count_;
      if (auto thrown = settle(std::move(use), status, reusable)) {
        error = std::move(thrown);
        break;
      }
    }
  }
  return error;
}

std::exception_ptr PendingFrees::settle(
    PendingUse use, const UseStatus& status, std::vector<Block*>& reusable) {
  if (status.status == PUONE_OK) {
    idle_events_.push_back(std::move(use.event));
    if (--use.block->pending_events == 0 && use.block->untracked.empty()) {
      reusable.push_back(use.block);
    }
    return nullptr;
  }
  if (isAsynchronousError(status.status) && !use.reported) {
    use.reported = true;
    queueOf(use.user).uses.push_front(std::move(use));
    ++count_;
    return status.error;
  }
  hold(use.block, use.user);
  warnHeld(status.error);
  return nullptr;
}

std::vector<PendingUse> PendingFrees::takeUses() {
  std::vector<PendingUse> taken;
  taken.reserve(count_);
  for (Queue& queue : queues_) {
    std::move(queue.uses.begin(), queue.uses.end(), std::back_inserter(taken));
    queue.uses.clear();
  }
  count_ = 0;
  return taken;
}

std::vector<Block*> PendingFrees::takeHeld() {
  return std::exchange(held_, {});
}

UseStatus PendingFrees::wait(const PendingUse& use) {
  return withError(hal().event_synchronize(use.event.handle()), "event_synchronize");
}

UseStatus PendingFrees::wait(const Stream& stream) {
  puone_stream handle = nullptr;
  try {
    handle = stream.handle(); // may have to create the stream
  } catch (...) {
    return {PUONE_DEVICE_LOST, std::current_exception()};
  }
  return withError(hal().stream_synchronize(handle), "stream_synchronize");
}

void PendingFrees::release(
    Block* held, const std::vector<Stream>& idle, std::vector<Block*>& reusable) {
  for (const Stream& stream : idle) {
    std::erase(held->untracked, stream.id());
  }
  if (!held->untracked.empty()) {
    held_.push_back(held);
  } else if (held->pending_events == 0) {
    reusable.push_back(held);
  }
}

} // namespace puone
