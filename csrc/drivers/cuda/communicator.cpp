// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/cuda/communicator.h"

#include <cstring>
#include <future>
#include <thread>
#include <utility>

#include "drivers/common/error.h"
#include "drivers/cuda/status.h"

namespace puone::cuda {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// How long the last messages may take to leave before they are given up.
constexpr milliseconds kPatience{5000};

/// Between two looks at what does not end at once.
class Pause {
 public:
  void operator()() {
    if (++turns_ < kSpins) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }

 private:
  static constexpr int kSpins = 200;
  int turns_ = 0;
};

[[noreturn]] void failWith(
    const Nccl& nccl, NcclCommunicator native, const char* name, NcclStatus status) {
  const auto kind =
      status == NcclStatus::kInvalidArgument ? PUONE_INVALID_ARGUMENT : PUONE_INTERNAL;
  const char* const detail = native != nullptr ? nccl.getLastError(native) : nullptr;
  const bool says_more = detail != nullptr && *detail != '\0';
  fail(
      kind,
      "%s: NCCL status %d: %s%s%s",
      name,
      static_cast<int>(status),
      nccl.getErrorString(status),
      says_more ? ": " : "",
      says_more ? detail : "");
}

} // namespace

const Nccl& requireNccl() {
  const LoadedNccl& loaded = nccl();
  if (loaded.functions == nullptr) fail(PUONE_UNSUPPORTED, "%s", loaded.missing.c_str());
  return *loaded.functions;
}

puone_collective_id newCollectiveId() {
  const Nccl& nccl = requireNccl();
  NcclId native{};
  const NcclStatus status = nccl.getUniqueId(&native);
  if (status != NcclStatus::kSuccess) failWith(nccl, nullptr, "ncclGetUniqueId", status);
  puone_collective_id id{};
  static_assert(sizeof id.bytes == sizeof native.bytes);
  std::memcpy(id.bytes, native.bytes, sizeof id.bytes);
  return id;
}

Communicator::Communicator(
    int32_t device, const puone_collective_id& id, int32_t rank, int32_t size, milliseconds timeout)
    : device_(device), state_(std::make_shared<State>(requireNccl())) {
  const auto late = steady_clock::now() + timeout;
  NcclId native_id{};
  std::memcpy(native_id.bytes, id.bytes, sizeof native_id.bytes);
  NcclConfig config;
  NcclStatus status = state_->nccl.initRank(&state_->native, size, native_id, rank, &config);
  for (Pause pause; status == NcclStatus::kInProgress; pause()) {
    if (steady_clock::now() > late) giveUp(size, timeout);
    status = progress();
  }
  if (status == NcclStatus::kSuccess) return;
  try {
    failWith(state_->nccl, state_->native, "ncclCommInitRankConfig", status);
  } catch (...) {
    if (state_->native != nullptr) abort();
    throw;
  }
}

void Communicator::giveUp(int32_t size, milliseconds timeout) {
  abort();
  fail(
      PUONE_INTERNAL,
      "not all of %d ranks came within %lld ms",
      size,
      static_cast<long long>(timeout.count()));
}

void Communicator::beginGroup() {
  if (inGroup()) fail(PUONE_INVALID_ARGUMENT, "a group was begun and not ended");
  std::unique_lock lock(state_->mutex);
  requireAlive();
  requireBegun("ncclGroupStart", state_->nccl.groupStart());
  group_stream = nullptr;
  group_ = std::move(lock);
}

void Communicator::endGroup() {
  if (!inGroup()) fail(PUONE_INVALID_ARGUMENT, "no group was begun");
  // Also after abort(): the library counts the groups of the thread.
  const NcclStatus status = state_->nccl.groupEnd();
  group_.unlock();
  settle("ncclGroupEnd", status);
}

void Communicator::abort() {
  if (state_->ended.exchange(true)) return;
  std::promise<void> begins;
  // Communicators end in the order of these calls: what one waits for on the device, another one
  // may have to send.
  const std::future<void> begun = begins.get_future();
  std::thread([state = state_, device = device_, begins = std::move(begins)]() mutable {
    note("cudaSetDevice", cudaSetDevice(device));
    const std::lock_guard guard(state->mutex);
    begins.set_value();
    // Nobody can be told of an error, and nothing can be done about it.
    if (state->native != nullptr) state->nccl.abort(std::exchange(state->native, nullptr));
  }).detach();
  begun.wait();
}

void Communicator::check() {
  const NcclStatus status = progress();
  if (status != NcclStatus::kInProgress) settle("ncclCommGetAsyncError", status);
}

void Communicator::close() {
  if (state_->ended) return;
  const auto late = steady_clock::now() + kPatience;
  NcclStatus status =
      locked([](const Nccl& nccl, NcclCommunicator native) { return nccl.finalize(native); });
  for (Pause pause; status == NcclStatus::kInProgress && steady_clock::now() < late; pause()) {
    status = progress();
  }
  if (status != NcclStatus::kSuccess) {
    abort();
    return;
  }
  const std::lock_guard guard(state_->mutex);
  if (state_->ended.exchange(true)) return;
  state_->nccl.destroy(std::exchange(state_->native, nullptr));
}

void Communicator::requireAlive() const {
  if (state_->ended) fail(PUONE_INTERNAL, "the communicator was aborted");
}

void Communicator::requireBegun(const char* name, NcclStatus status) const {
  if (status == NcclStatus::kSuccess || status == NcclStatus::kInProgress) return;
  failWith(state_->nccl, state_->native, name, status);
}

/// What the library is at.
NcclStatus Communicator::progress() const {
  return locked([](const Nccl& nccl, NcclCommunicator native) {
    NcclStatus state = NcclStatus::kSuccess;
    const NcclStatus status = nccl.getAsyncError(native, &state);
    return status == NcclStatus::kSuccess ? state : status;
  });
}

/// Until the call has queued its work.
void Communicator::settle(const char* name, NcclStatus status) const {
  for (Pause pause; status == NcclStatus::kInProgress; pause()) status = progress();
  if (status == NcclStatus::kSuccess) return;
  const std::lock_guard guard(state_->mutex);
  requireAlive();
  failWith(state_->nccl, state_->native, name, status);
}

} // namespace puone::cuda
