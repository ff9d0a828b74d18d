// SPDX-License-Identifier: BSD-3-Clause
// Process groups: the backend of one, its work, and a store.
#pragma once

#include "version.h"

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Utils.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

namespace probe {
namespace {

struct Work final : c10d::Work {
  Work() : c10d::Work(0, c10d::OpType::ALLREDUCE, "probe", std::nullopt) {}

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  int sourceRank() const override;
  std::vector<at::Tensor> result() override;
  void synchronize() override;
  bool wait(std::chrono::milliseconds) override;
  void abort() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  float getDuration() const override;
  uint64_t getSequencenumber() const override;
#if PROBE_TORCH(2, 6)
  c10::intrusive_ptr<c10::ivalue::Future> getFutureResult() override;
#endif
#if PROBE_TORCH(2, 9)
  void blockCurrentStream() override;
#endif
#if PROBE_TORCH(2, 14)
  std::chrono::milliseconds getTimeout() const override;
#endif
#if PROBE_TORCH(2, 15)
  uint64_t getCompletionKey() const override;
#endif
};

struct Store final : c10d::Store {
  void set(const std::string&, const std::vector<uint8_t>&) override;
  std::vector<uint8_t> compareSet(
      const std::string&, const std::vector<uint8_t>&, const std::vector<uint8_t>&) override;
  std::vector<uint8_t> get(const std::string&) override;
  int64_t add(const std::string&, int64_t) override;
  bool deleteKey(const std::string&) override;
  bool check(const std::vector<std::string>&) override;
  int64_t getNumKeys() override;
  void wait(const std::vector<std::string>&) override;
  void wait(const std::vector<std::string>&, const std::chrono::milliseconds&) override;
  const std::chrono::milliseconds& getTimeout() const noexcept override;
  void setTimeout(const std::chrono::milliseconds&) override;
  void watchKey(const std::string&, c10d::WatchKeyCallback) override;
  void append(const std::string&, const std::vector<uint8_t>&) override;
  std::vector<std::vector<uint8_t>> multiGet(const std::vector<std::string>&) override;
  void multiSet(const std::vector<std::string>&, const std::vector<std::vector<uint8_t>>&) override;
  bool hasExtendedApi() const override;
#if PROBE_TORCH(2, 8)
  c10::intrusive_ptr<c10d::Store> clone() override;
  void queuePush(const std::string&, const std::vector<uint8_t>&) override;
  std::vector<uint8_t> queuePop(const std::string&, bool) override;
  int64_t queueLen(const std::string&) override;
#endif
#if PROBE_TORCH(2, 10)
  std::vector<std::string> listKeys() override;
#endif
#if PROBE_TORCH(2, 12)
  void barrier(const std::string&, int64_t, const std::chrono::milliseconds&) override;
#endif
};

struct Backend final : c10d::Backend {
  struct Options : c10d::Backend::Options {
    explicit Options(std::chrono::milliseconds timeout)
        : c10d::Backend::Options("probe", timeout) {}
  };

  Backend(int rank, int size) : c10d::Backend(rank, size) {}

  bool supportsSplitting() const override;
  void startCoalescing() override;
  c10::intrusive_ptr<c10d::Work> endCoalescing() override;
  const std::string getBackendName() const override;
  c10::intrusive_ptr<c10d::Work> broadcast(
      std::vector<at::Tensor>&, const c10d::BroadcastOptions&) override;
  c10::intrusive_ptr<c10d::Work> allreduce(
      std::vector<at::Tensor>&, const c10d::AllreduceOptions&) override;
  c10::intrusive_ptr<c10d::Work> allreduce_sparse(
      std::vector<at::Tensor>&, const c10d::AllreduceOptions&) override;
  c10::intrusive_ptr<c10d::Work> allreduce_coalesced(
      std::vector<at::Tensor>&, const c10d::AllreduceCoalescedOptions&) override;
  c10::intrusive_ptr<c10d::Work> reduce(
      std::vector<at::Tensor>&, const c10d::ReduceOptions&) override;
  c10::intrusive_ptr<c10d::Work> allgather(
      std::vector<std::vector<at::Tensor>>&,
      std::vector<at::Tensor>&,
      const c10d::AllgatherOptions&) override;
  c10::intrusive_ptr<c10d::Work> _allgather_base(
      at::Tensor&, at::Tensor&, const c10d::AllgatherOptions&) override;
  c10::intrusive_ptr<c10d::Work> allgather_coalesced(
      std::vector<std::vector<at::Tensor>>&,
      std::vector<at::Tensor>&,
      const c10d::AllgatherOptions&) override;
  c10::intrusive_ptr<c10d::Work> allgather_into_tensor_coalesced(
      std::vector<at::Tensor>&, std::vector<at::Tensor>&, const c10d::AllgatherOptions&) override;
  c10::intrusive_ptr<c10d::Work> gather(
      std::vector<std::vector<at::Tensor>>&,
      std::vector<at::Tensor>&,
      const c10d::GatherOptions&) override;
  c10::intrusive_ptr<c10d::Work> scatter(
      std::vector<at::Tensor>&,
      std::vector<std::vector<at::Tensor>>&,
      const c10d::ScatterOptions&) override;
  c10::intrusive_ptr<c10d::Work> reduce_scatter(
      std::vector<at::Tensor>&,
      std::vector<std::vector<at::Tensor>>&,
      const c10d::ReduceScatterOptions&) override;
  c10::intrusive_ptr<c10d::Work> _reduce_scatter_base(
      at::Tensor&, at::Tensor&, const c10d::ReduceScatterOptions&) override;
  c10::intrusive_ptr<c10d::Work> reduce_scatter_tensor_coalesced(
      std::vector<at::Tensor>&,
      std::vector<at::Tensor>&,
      const c10d::ReduceScatterOptions&) override;
  c10::intrusive_ptr<c10d::Work> alltoall_base(
      at::Tensor&,
      at::Tensor&,
      std::vector<int64_t>&,
      std::vector<int64_t>&,
      const c10d::AllToAllOptions&) override;
  c10::intrusive_ptr<c10d::Work> alltoall(
      std::vector<at::Tensor>&, std::vector<at::Tensor>&, const c10d::AllToAllOptions&) override;
  void monitoredBarrier(const c10d::BarrierOptions&, bool) override;
  void setSequenceNumberForGroup() override;
  uint64_t getSequenceNumberForGroup() override;
  c10::intrusive_ptr<c10d::Work> send(std::vector<at::Tensor>&, int, int) override;
  c10::intrusive_ptr<c10d::Work> recv(std::vector<at::Tensor>&, int, int) override;
  c10::intrusive_ptr<c10d::Work> recvAnysource(std::vector<at::Tensor>&, int) override;
  c10::intrusive_ptr<c10d::Work> barrier(const c10d::BarrierOptions&) override;
  void registerOnCompletionHook(std::function<void(std::shared_ptr<c10d::WorkInfo>)>&&) override;
  void waitForPendingWorks() override;
  void enableCollectivesTiming() override;
  void eagerConnectSingleDevice(at::Device) override;
#if PROBE_TORCH(2, 7)
  bool supportsCoalescing() const override;
  c10d::ErrorType getError() override;
  std::shared_ptr<c10::Allocator> getMemAllocator() override;
  at::Tensor allocateTensor(long, at::TensorOptions) override;
  bool supportsTensorAlloc(c10::DeviceIndex) override;
  void abort() override;
  void shutdown() override;
#endif
#if PROBE_TORCH(2, 8)
  bool supportsTimeEstimation() const override;
#endif
#if PROBE_TORCH(2, 9)
  void setTimeout(std::chrono::milliseconds) override;
  c10::intrusive_ptr<c10d::Backend::Options> getBackendOptions() override;
  c10::intrusive_ptr<c10d::Backend> split(
      const c10::intrusive_ptr<c10d::Store>&,
      const std::vector<int>&,
      const c10::intrusive_ptr<c10d::Backend::Options>&) override;
  c10::intrusive_ptr<c10d::Backend> merge(
      const c10::intrusive_ptr<c10d::Store>&,
      const c10::intrusive_ptr<c10d::Backend::Options>&,
      const int&,
      const int&) override;
#endif
#if PROBE_TORCH(2, 10)
  bool supportsShrinking() const override;
  c10::intrusive_ptr<c10d::Backend> shrink(
      const std::vector<int64_t>&, int, const c10::intrusive_ptr<c10d::Backend::Options>&) override;
  void setGroupUid(const std::string&) override;
#endif
#if PROBE_TORCH(2, 12)
  void suspend() override;
  void resume() override;
  std::unordered_map<std::string, uint64_t> getMemoryStats() override;
#endif
#if PROBE_TORCH(2, 14)
  void addEphemeralTimeout(const std::chrono::milliseconds&) override;
  bool supportsReconfigure() const override;
  c10d::ReconfigureHandle get_reconfigure_handle() const override;
  c10::intrusive_ptr<c10d::Work> reconfigure(const c10d::ReconfigureOptions&) override;
  bool supportsWindow() const override;
  c10::intrusive_ptr<c10d::Window> new_window(const std::optional<at::Tensor>&) override;
  void registerAbortHook(int64_t, c10d::AbortHook) override;
  void unregisterAbortHook(int64_t) override;
  c10::intrusive_ptr<c10d::Work> all_gather_single(
      at::Tensor&, at::Tensor&, const c10d::AllgatherOptions&) override;
  c10::intrusive_ptr<c10d::Work> all_gather_single_coalesced(
      std::vector<at::Tensor>&, std::vector<at::Tensor>&, const c10d::AllgatherOptions&) override;
  c10::intrusive_ptr<c10d::Work> gather_single(
      at::Tensor&, at::Tensor&, const c10d::GatherOptions&) override;
  c10::intrusive_ptr<c10d::Work> gather_into_tensor(
      at::Tensor&, at::Tensor&, const c10d::GatherOptions&) override;
  c10::intrusive_ptr<c10d::Work> reduce_scatter_single(
      at::Tensor&, at::Tensor&, const c10d::ReduceScatterOptions&) override;
  c10::intrusive_ptr<c10d::Work> reduce_scatter_single_coalesced(
      std::vector<at::Tensor>&,
      std::vector<at::Tensor>&,
      const c10d::ReduceScatterOptions&) override;
  c10::intrusive_ptr<c10d::Work> all_to_all_single(
      at::Tensor&,
      at::Tensor&,
      std::vector<int64_t>&,
      std::vector<int64_t>&,
      const c10d::AllToAllOptions&) override;
  std::optional<at::Device> getBoundDeviceId() const override;
  void setBoundDeviceId(std::optional<at::Device>) override;
#endif
#if PROBE_TORCH(2, 15)
  bool isInitialized() override;
  void startTimeEstimate() override;
  float endTimeEstimate() override;
  bool supportsAbortHooks() const override;
  bool supportsCompletionHooks() const override;
  void registerCompletionHook(int64_t, c10d::CompletionHook) override;
  void unregisterCompletionHook(int64_t) override;
#endif
};

struct ProcessGroup final : c10d::ProcessGroup {
  ProcessGroup(int rank, int size) : c10d::ProcessGroup(rank, size) {}

  const std::string getBackendName() const override;
  void startCoalescing(c10::DeviceType) override;
  c10::intrusive_ptr<c10d::Work> endCoalescing(c10::DeviceType) override;
  c10::intrusive_ptr<c10d::Work> broadcast(
      std::vector<at::Tensor>&, const c10d::BroadcastOptions&) override;
  c10::intrusive_ptr<c10d::Work> allreduce(
      std::vector<at::Tensor>&, const c10d::AllreduceOptions&) override;
  c10::intrusive_ptr<c10d::Work> allreduce_coalesced(
      std::vector<at::Tensor>&, const c10d::AllreduceCoalescedOptions&) override;
  c10::intrusive_ptr<c10d::Work> reduce(
      std::vector<at::Tensor>&, const c10d::ReduceOptions&) override;
  c10::intrusive_ptr<c10d::Work> allgather(
      std::vector<std::vector<at::Tensor>>&,
      std::vector<at::Tensor>&,
      const c10d::AllgatherOptions&) override;
  c10::intrusive_ptr<c10d::Work> _allgather_base(
      at::Tensor&, at::Tensor&, const c10d::AllgatherOptions&) override;
  c10::intrusive_ptr<c10d::Work> allgather_coalesced(
      std::vector<std::vector<at::Tensor>>&,
      std::vector<at::Tensor>&,
      const c10d::AllgatherOptions&) override;
  c10::intrusive_ptr<c10d::Work> allgather_into_tensor_coalesced(
      std::vector<at::Tensor>&, std::vector<at::Tensor>&, const c10d::AllgatherOptions&) override;
  c10::intrusive_ptr<c10d::Work> gather(
      std::vector<std::vector<at::Tensor>>&,
      std::vector<at::Tensor>&,
      const c10d::GatherOptions&) override;
  c10::intrusive_ptr<c10d::Work> scatter(
      std::vector<at::Tensor>&,
      std::vector<std::vector<at::Tensor>>&,
      const c10d::ScatterOptions&) override;
  c10::intrusive_ptr<c10d::Work> reduce_scatter(
      std::vector<at::Tensor>&,
      std::vector<std::vector<at::Tensor>>&,
      const c10d::ReduceScatterOptions&) override;
  c10::intrusive_ptr<c10d::Work> _reduce_scatter_base(
      at::Tensor&, at::Tensor&, const c10d::ReduceScatterOptions&) override;
  c10::intrusive_ptr<c10d::Work> reduce_scatter_tensor_coalesced(
      std::vector<at::Tensor>&,
      std::vector<at::Tensor>&,
      const c10d::ReduceScatterOptions&) override;
  c10::intrusive_ptr<c10d::Work> alltoall_base(
      at::Tensor&,
      at::Tensor&,
      std::vector<int64_t>&,
      std::vector<int64_t>&,
      const c10d::AllToAllOptions&) override;
  c10::intrusive_ptr<c10d::Work> alltoall(
      std::vector<at::Tensor>&, std::vector<at::Tensor>&, const c10d::AllToAllOptions&) override;
  void monitoredBarrier(const c10d::BarrierOptions&, bool) override;
  uint64_t getSequenceNumberForGroup() override;
  c10::intrusive_ptr<c10d::Work> send(std::vector<at::Tensor>&, int, int) override;
  c10::intrusive_ptr<c10d::Work> recv(std::vector<at::Tensor>&, int, int) override;
  c10::intrusive_ptr<c10d::Work> recvAnysource(std::vector<at::Tensor>&, int) override;
  c10::intrusive_ptr<c10d::Work> barrier(const c10d::BarrierOptions&) override;
  void release_resources() override;
#if !PROBE_TORCH(2, 14)
  void setSequenceNumberForGroup() override;
#endif
#if PROBE_TORCH(2, 6)
  int getRank() const override;
  int getSize() const override;
  const std::string& getGroupName() const override;
  void setGroupName(const std::string&) override;
  const std::string& getGroupDesc() const override;
  void setGroupDesc(const std::string&) override;
#endif
#if PROBE_TORCH(2, 7)
  void shutdown() override;
  void abort() override;
#endif
#if PROBE_TORCH(2, 9)
  void setTimeout(std::chrono::milliseconds) override;
  c10::intrusive_ptr<c10d::ProcessGroup> mergeRemoteGroup(
      const c10::intrusive_ptr<c10d::Store>&,
      const c10d::ProcessGroup::MergeOptions&,
      const int&) override;
#endif
#if PROBE_TORCH(2, 9) && !PROBE_TORCH(2, 13)
  c10::intrusive_ptr<c10d::ProcessGroup> splitGroup(
      const std::vector<int>&,
      const std::optional<std::chrono::milliseconds>&,
      const std::optional<c10::intrusive_ptr<c10d::Backend::Options>>&,
      const std::optional<std::string>&,
      const std::optional<std::string>&) override;
#endif
#if PROBE_TORCH(2, 13)
  c10::intrusive_ptr<c10d::Work> all_gather_single(
      at::Tensor&, at::Tensor&, const c10d::AllgatherOptions&) override;
  c10::intrusive_ptr<c10d::Work> all_gather_single_coalesced(
      std::vector<at::Tensor>&, std::vector<at::Tensor>&, const c10d::AllgatherOptions&) override;
  c10::intrusive_ptr<c10d::Work> reduce_scatter_single(
      at::Tensor&, at::Tensor&, const c10d::ReduceScatterOptions&) override;
  c10::intrusive_ptr<c10d::Work> reduce_scatter_single_coalesced(
      std::vector<at::Tensor>&,
      std::vector<at::Tensor>&,
      const c10d::ReduceScatterOptions&) override;
  c10::intrusive_ptr<c10d::Work> all_to_all_single(
      at::Tensor&,
      at::Tensor&,
      std::vector<int64_t>&,
      std::vector<int64_t>&,
      const c10d::AllToAllOptions&) override;
  c10::intrusive_ptr<c10d::ProcessGroup> splitGroup(
      const std::vector<int>&,
      const std::optional<std::chrono::milliseconds>&,
      const std::optional<c10::intrusive_ptr<c10d::Backend::Options>>&,
      const std::optional<std::string>&,
      const std::optional<std::string>&,
      const std::optional<std::vector<c10::Device>>&) override;
#endif
#if PROBE_TORCH(2, 14)
  void addEphemeralTimeout(const std::chrono::milliseconds&) override;
  c10::intrusive_ptr<c10d::Work> gather_single(
      at::Tensor&, at::Tensor&, const c10d::GatherOptions&) override;
  c10::intrusive_ptr<c10d::Work> gather_into_tensor(
      at::Tensor&, at::Tensor&, const c10d::GatherOptions&) override;
  bool supportsReconfigure() const override;
  c10d::ReconfigureHandle get_reconfigure_handle() const override;
  c10::intrusive_ptr<c10d::Work> reconfigure(const c10d::ReconfigureOptions&) override;
  bool supportsWindow() const override;
  c10::intrusive_ptr<c10d::Window> new_window(const std::optional<at::Tensor>&) override;
  void registerAbortHook(int64_t, c10d::AbortHook) override;
  void unregisterAbortHook(int64_t) override;
  void registerPreHook(int64_t, c10d::PreHook) override;
  void unregisterPreHook(int64_t) override;
  void registerPostHook(int64_t, c10d::PostHook) override;
  void unregisterPostHook(int64_t) override;
#endif
#if PROBE_TORCH(2, 15)
  bool supportsAbortHooks() const override;
  bool supportsCompletionHooks() const override;
  void registerCompletionHook(int64_t, c10d::CompletionHook) override;
  void unregisterCompletionHook(int64_t) override;
#endif
};

void useCollectives(const c10::intrusive_ptr<c10d::Store>& store) {
  new Work();
  new Store();
  auto* backend = new Backend(0, 1);
  new ProcessGroup(0, 1);
  new Backend::Options(kBackendDefaultTimeout);
  (void)backend->getRank();
  (void)backend->getSize();
  auto prefixed = c10::make_intrusive<c10d::PrefixStore>("probe", store);
  prefixed->set("key", std::string("value"));
  (void)prefixed->get_to_str("key");
  c10d::AllreduceOptions all;
  all.reduceOp = c10d::ReduceOp::SUM;
  (void)all.timeout;
  for (auto op :
       {c10d::ReduceOp::SUM,
        c10d::ReduceOp::AVG,
        c10d::ReduceOp::PRODUCT,
        c10d::ReduceOp::MIN,
        c10d::ReduceOp::MAX,
        c10d::ReduceOp::BAND,
        c10d::ReduceOp::BOR,
        c10d::ReduceOp::BXOR,
        c10d::ReduceOp::PREMUL_SUM,
        c10d::ReduceOp::UNUSED}) {
    (void)(op == c10d::ReduceOp::SUM);
  }
  c10d::BroadcastOptions broadcast;
  broadcast.rootRank = 0;
  broadcast.rootTensor = 0;
  c10d::BarrierOptions barrier;
  barrier.device_ids = {0};
  (void)c10d::opTypeToString(c10d::OpType::BROADCAST);
  (void)c10d::isP2POp(c10d::OpType::SEND);
  (void)c10d::getCvarString({"PROBE"}, "");
  (void)c10d::getCvarInt({"PROBE"}, 0);
  (void)c10d::getCvarBool({"PROBE"}, false);
  (void)kProcessGroupDefaultTimeout;
}

} // namespace
} // namespace probe
