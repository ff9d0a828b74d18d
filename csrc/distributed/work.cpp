// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/work.h"

#include <ATen/core/ivalue.h>
#include <c10/core/StreamGuard.h>

#include <algorithm>

namespace puone::distributed {
namespace {

using Clock = std::chrono::steady_clock;

c10::intrusive_ptr<c10::ivalue::Future> tensorsFuture(std::vector<c10::Device> devices) {
  return c10::make_intrusive<c10::ivalue::Future>(
      c10::ListType::create(c10::TensorType::get()), std::move(devices));
}

} // namespace

CallWork::CallWork(
    int rank,
    c10d::OpType type,
    std::shared_ptr<Operation> operation,
    std::vector<at::Tensor> outputs,
    bool blocks)
    : c10d::Work(rank, type),
      operation_(std::move(operation)),
      outputs_(std::move(outputs)),
      blocks_(blocks) {}

void CallWork::endsAt(const Stream& stream) {
  end_.record(stream);
  // Complete at once, as NCCL's: a future of device tensors orders the streams of who uses it.
  const c10::StreamGuard on_stream(stream.unwrap());
  future_ = tensorsFuture({stream.device()});
  future_->markCompleted(c10::IValue(outputs_));
}

bool CallWork::isCompleted() {
  return operation_->state() == Operation::State::kFailed || end_.query();
}

bool CallWork::isSuccess() const {
  return operation_->state() != Operation::State::kFailed && end_.query();
}

std::exception_ptr CallWork::exception() const {
  const auto failure = operation_->failure();
  return failure ? failure->error() : nullptr;
}

int CallWork::sourceRank() const {
  TORCH_CHECK(source_rank_ != nullptr, "pccl: only a receive from any rank has a source rank");
  operation_->wait();
  raiseFailure();
  return *source_rank_;
}

void CallWork::raiseFailure() const {
  if (const auto failure = operation_->failure()) failure->raise();
}

void CallWork::synchronize() {
  const c10::DeviceIndex device = operation_->device();
  end_.block(getCurrentStream(device));
}

bool CallWork::wait(std::chrono::milliseconds timeout) {
  raiseFailure();
  if (timeout != kNoTimeout) {
    TORCH_CHECK_WITH(
        DistBackendError,
        operation_->waitFor(timeout),
        "pccl: ",
        operation_->describe(),
        ": not done within ",
        timeout.count(),
        " ms");
    raiseFailure();
  }
  synchronize();
  if (blocks_) {
    end_.synchronize();
    raiseFailure();
  }
  return true;
}

JointWork::JointWork(int rank, std::vector<c10::intrusive_ptr<c10d::Work>> parts)
    : c10d::Work(rank, c10d::OpType::COALESCED), parts_(std::move(parts)) {}

bool JointWork::isCompleted() {
  return std::all_of(
      parts_.begin(), parts_.end(), [](const auto& part) { return part->isCompleted(); });
}

bool JointWork::isSuccess() const {
  return std::all_of(
      parts_.begin(), parts_.end(), [](const auto& part) { return part->isSuccess(); });
}

std::exception_ptr JointWork::exception() const {
  for (const auto& part : parts_) {
    if (const auto error = part->exception()) return error;
  }
  return nullptr;
}

std::vector<at::Tensor> JointWork::result() {
  std::vector<at::Tensor> all;
  for (const auto& part : parts_) {
    const auto tensors = part->result();
    all.insert(all.end(), tensors.begin(), tensors.end());
  }
  return all;
}

void JointWork::synchronize() {
  for (const auto& part : parts_) part->synchronize();
}

bool JointWork::wait(std::chrono::milliseconds timeout) {
  const auto end = Clock::now() + timeout;
  for (const auto& part : parts_) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    left = std::max(left, std::chrono::milliseconds(1)); // 0 would mean "no timeout"
    part->wait(timeout == kNoTimeout ? kNoTimeout : left);
  }
  return true;
}

c10::intrusive_ptr<c10::ivalue::Future> JointWork::getFuture() {
  const auto tensors = result();
  std::vector<c10::Device> devices;
  for (const auto& tensor : tensors) {
    if (std::find(devices.begin(), devices.end(), tensor.device()) == devices.end()) {
      devices.push_back(tensor.device());
    }
  }
  synchronize(); // the future remembers what the current stream waits for
  auto future = tensorsFuture(std::move(devices));
  future->markCompleted(c10::IValue(tensors));
  return future;
}

} // namespace puone::distributed
