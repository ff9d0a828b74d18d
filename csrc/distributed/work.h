// SPDX-License-Identifier: BSD-3-Clause
// What a call of the process group returns. wait() makes the current stream wait and returns.
#pragma once

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <memory>
#include <vector>

#include "distributed/operation.h"
#include "runtime/event.h"

namespace puone::distributed {

class CallWork final : public c10d::Work {
 public:
  // `blocks`: wait() also keeps the caller, as a barrier does.
  CallWork(
      int rank,
      c10d::OpType type,
      std::shared_ptr<Operation> operation,
      std::vector<at::Tensor> outputs,
      bool blocks);

  // The results are there once the stream has passed this point. Called once, before the work is
  // given to the caller.
  void endsAt(const Stream& stream);
  void comesFrom(std::shared_ptr<const int> source_rank) {
    source_rank_ = std::move(source_rank);
  }

  // Of the device too. Does not wait.
  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  // Waits until the message is there, on the host.
  int sourceRank() const override;
  std::vector<at::Tensor> result() override {
    return outputs_;
  }
  void synchronize() override;
  // Throws if the operation has failed already; otherwise a later synchronisation may. With a
  // timeout it waits on the host, and throws if that takes longer.
  bool wait(std::chrono::milliseconds timeout) override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    return future_;
  }
  uint64_t getSequencenumber() const override {
    return operation_->number();
  }

 private:
  void raiseFailure() const;

  const std::shared_ptr<Operation> operation_;
  const std::vector<at::Tensor> outputs_;
  const bool blocks_;
  std::shared_ptr<const int> source_rank_;
  Event end_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

// Several at once: what a coalescing manager returns.
class JointWork final : public c10d::Work {
 public:
  JointWork(int rank, std::vector<c10::intrusive_ptr<c10d::Work>> parts);

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  std::vector<at::Tensor> result() override;
  void synchronize() override;
  bool wait(std::chrono::milliseconds timeout) override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

 private:
  const std::vector<c10::intrusive_ptr<c10d::Work>> parts_;
};

} // namespace puone::distributed
