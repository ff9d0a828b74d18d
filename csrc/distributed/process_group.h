// SPDX-License-Identifier: BSD-3-Clause
// The process group `pccl`: c10d's interface over a Session. Each collective of c10d becomes parts
// that are copied and exchanged; arguments are checked on the caller.
#pragma once

#include <sys/types.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "distributed/parts.h"
#include "distributed/session.h"

namespace puone::distributed {

constexpr const char* kBackendName = "pccl";

struct GroupOptions : c10d::Backend::Options {
  explicit GroupOptions(std::chrono::milliseconds timeout = kBackendDefaultTimeout)
      : c10d::Backend::Options(kBackendName, timeout) {}

  // "native", "staged", or "" for native where all ranks can (and PUONE_PCCL does not say).
  std::string transport;
};

// Python finds the class by its type, so there is nothing derived from it.
class ProcessGroup final : public c10d::Backend {
 public:
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  // `host` exchanges host memory between the same ranks, and belongs to the group from now on; its
  // timeout is the group's. Waits for all ranks, which agree on the transport.
  ProcessGroup(
      c10::intrusive_ptr<c10d::Backend> host,
      int rank,
      int size,
      c10::intrusive_ptr<GroupOptions> options);
  // Waits for what was called, unless the group has failed.
  ~ProcessGroup() override;

  // The calls that have not ended, oldest first, a line for each.
  std::vector<std::string> pending() const;
  c10::intrusive_ptr<GroupOptions> options() const;
  // "native" or "staged", and why it is not native.
  std::string transport() const;
  const std::string& whyStaged() const;

  // ---- the group ----

  const std::string getBackendName() const override;
  c10::intrusive_ptr<c10d::Backend::Options> getBackendOptions() override;
  void setTimeout(std::chrono::milliseconds timeout) override;
  // Calls are numbered from 1; nothing has to be agreed on.
  void setSequenceNumberForGroup() override;
  uint64_t getSequenceNumberForGroup() override;
  c10d::ErrorType getError() override;
  void shutdown() override;
  void abort() override;
  bool supportsSplitting() const override;
  c10::intrusive_ptr<c10d::Backend> split(
      const c10::intrusive_ptr<c10d::Store>& store,
      const std::vector<int>& ranks,
      const c10::intrusive_ptr<c10d::Backend::Options>& options) override;
  // Of a native group: waits until every rank has called it, which the first collective does
  // otherwise. PyTorch calls it for groups that are made with a device.
  void eagerConnectSingleDevice(at::Device device) override;
  // No call keeps the caller, so a batch needs nothing but one work for all.
  bool supportsCoalescing() const override;
  void startCoalescing() override;
  WorkPtr endCoalescing() override;

  // ---- collectives ----

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allreduce_coalesced(
      Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override;
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkPtr allgather(
      std::vector<Tensors>& outputs,
      Tensors& inputs,
      const c10d::AllgatherOptions& options) override;
  WorkPtr _allgather_base(
      at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_coalesced(
      std::vector<Tensors>& outputs,
      Tensors& inputs,
      const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_into_tensor_coalesced(
      Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  WorkPtr gather(
      std::vector<Tensors>& outputs, Tensors& inputs, const c10d::GatherOptions& options) override;
  WorkPtr scatter(
      Tensors& outputs, std::vector<Tensors>& inputs, const c10d::ScatterOptions& options) override;
  WorkPtr reduce_scatter(
      Tensors& outputs,
      std::vector<Tensors>& inputs,
      const c10d::ReduceScatterOptions& options) override;
  WorkPtr _reduce_scatter_base(
      at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) override;
  WorkPtr reduce_scatter_tensor_coalesced(
      Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) override;
  WorkPtr alltoall_base(
      at::Tensor& output,
      at::Tensor& input,
      std::vector<int64_t>& output_splits,
      std::vector<int64_t>& input_splits,
      const c10d::AllToAllOptions& options) override;
  WorkPtr alltoall(
      Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override;
  // On the device of the options, the group's own or the current one. Covers what the current
  // stream of this device holds, and keeps the caller, as NCCL's does.
  WorkPtr barrier(const c10d::BarrierOptions& options) override;

  // ---- messages ----

  WorkPtr send(Tensors& tensors, int to, int tag) override;
  WorkPtr recv(Tensors& tensors, int from, int tag) override;
  WorkPtr recvAnysource(Tensors& tensors, int tag) override;

 private:
  using Batch = std::vector<WorkPtr>;

  Call begin(
      c10d::OpType type, const char* name, const Tensors& inputs, const Tensors& outputs) const;
  WorkPtr run(Call call);
  WorkPtr receive(
      c10d::OpType type, Tensors& tensors, int from, const std::string& whence, int tag);

  std::shared_ptr<Session> session_;
  const c10::intrusive_ptr<GroupOptions> options_;
  std::shared_ptr<Native> native_; // NULL if the group is staged
  std::string why_staged_;
  std::unique_ptr<const Parts> parts_;
  const pid_t process_;
  std::mutex batch_mutex_;
  std::optional<Batch> batch_; // the calls since startCoalescing()
};

} // namespace puone::distributed
