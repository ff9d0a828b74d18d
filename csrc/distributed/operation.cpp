// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/operation.h"

#include <algorithm>
#include <iomanip>
#include <sstream>
#include <utility>

namespace puone::distributed {
namespace {

std::vector<std::shared_ptr<Ticket>> makeTickets(size_t count) {
  std::vector<std::shared_ptr<Ticket>> tickets(count);
  std::generate(tickets.begin(), tickets.end(), [] { return std::make_shared<Ticket>(); });
  return tickets;
}

const char* describeState(Operation::State state) {
  switch (state) {
    case Operation::State::kWaitsForDevice:
      return "waits for the device";
    case Operation::State::kExchanges:
      return "waits for other ranks";
    case Operation::State::kDone:
      return "done";
    case Operation::State::kFailed:
      return "failed";
  }
  return "";
}

} // namespace

Operation::Operation(uint64_t number, std::string text, c10::DeviceIndex device, size_t parts)
    : number_(number),
      text_(std::move(text)),
      device_(device),
      tickets_(makeTickets(parts)),
      unfinished_(parts) {
  if (parts == 0) state_ = State::kDone;
}

bool Operation::ended() const noexcept {
  return state() == State::kDone || state() == State::kFailed;
}

void Operation::exchanges() noexcept {
  const std::lock_guard lock(mutex_);
  if (!ended()) state_ = State::kExchanges;
}

void Operation::finishPart(size_t part) {
  {
    const std::lock_guard lock(mutex_);
    if (--unfinished_ == 0 && !ended()) state_ = State::kDone;
  }
  changed_.notify_all();
  tickets_.at(part)->give();
}

void Operation::fail(const std::shared_ptr<const Failure>& failure) {
  {
    const std::lock_guard lock(mutex_);
    if (ended()) return;
    state_ = State::kFailed;
    failure_ = failure;
  }
  changed_.notify_all();
}

void Operation::release() noexcept {
  for (const auto& ticket : tickets_) ticket->give();
}

std::shared_ptr<const Failure> Operation::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

bool Operation::waitFor(std::chrono::milliseconds timeout) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, timeout, [this] { return ended(); });
}

void Operation::wait() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ended(); });
}

std::string Operation::describe() const {
  const std::chrono::duration<double> age = std::chrono::steady_clock::now() - begun_;
  std::ostringstream line;
  line << '#' << number_ << ' ' << text_ << ", " << describeState(state()) << ", " << std::fixed
       << std::setprecision(1) << age.count() << " s";
  return line.str();
}

} // namespace puone::distributed
