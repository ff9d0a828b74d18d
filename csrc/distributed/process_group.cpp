// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/process_group.h"

#include <ATen/record_function.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "distributed/arguments.h"
#include "distributed/native_parts.h"
#include "distributed/reduction.h"
#include "distributed/work.h"
#include "runtime/device.h"

namespace puone::distributed {

using at::Tensor;
using c10d::OpType;
using WorkPtr = ProcessGroup::WorkPtr;

namespace {

void requirePairs(const char* name, const Tensors& outputs, const Tensors& inputs) {
  TORCH_CHECK_VALUE(
      outputs.size() == inputs.size(),
      "pccl: ",
      name,
      ": ",
      outputs.size(),
      " outputs for ",
      inputs.size(),
      " inputs");
}

std::vector<int64_t> bytesOf(const Tensors& tensors) {
  std::vector<int64_t> bytes;
  for (const auto& tensor : tensors) bytes.push_back(static_cast<int64_t>(tensor.nbytes()));
  return bytes;
}

std::vector<int64_t> bytesOfRows(const Tensor& tensor, std::vector<int64_t> rows) {
  const auto all = static_cast<int64_t>(tensor.nbytes());
  const int64_t row = tensor.size(0) == 0 ? 0 : all / tensor.size(0);
  for (int64_t& count : rows) count *= row;
  return rows;
}

} // namespace

ProcessGroup::ProcessGroup(
    c10::intrusive_ptr<c10d::Backend> host,
    int rank,
    int size,
    c10::intrusive_ptr<GroupOptions> options)
    : c10d::Backend(rank, size), options_(std::move(options)), process_(getpid()) {
  native_ = Native::agree(*host, rank, size, transportOf(options_->transport), why_staged_);
  if (native_) {
    parts_ = std::make_unique<NativeParts>(native_, rank, size, options_);
  } else {
    parts_ = std::make_unique<Parts>(rank, size);
  }
  session_ = Session::create(std::move(host), rank, native_);
}

ProcessGroup::~ProcessGroup() {
  if (getpid() == process_) {
    session_->shutDown();
  } else { // a forked child: the threads that its members belong to do not exist
    new std::shared_ptr<Session>(std::move(session_));
  }
}

std::vector<std::string> ProcessGroup::pending() const {
  return session_->pending();
}

c10::intrusive_ptr<GroupOptions> ProcessGroup::options() const {
  return options_;
}

std::string ProcessGroup::transport() const {
  return native_ ? "native" : "staged";
}

const std::string& ProcessGroup::whyStaged() const {
  return why_staged_;
}

// ---- the group ----

const std::string ProcessGroup::getBackendName() const {
  return kBackendName;
}

c10::intrusive_ptr<c10d::Backend::Options> ProcessGroup::getBackendOptions() {
  return options_;
}

void ProcessGroup::setTimeout(std::chrono::milliseconds timeout) {
  session_->host().setTimeout(timeout);
  options_->timeout = timeout;
}

void ProcessGroup::setSequenceNumberForGroup() {}

uint64_t ProcessGroup::getSequenceNumberForGroup() {
  return session_->callCount();
}

c10d::ErrorType ProcessGroup::getError() {
  return session_->hasFailed() ? c10d::ErrorType::COMM_ERROR : c10d::ErrorType::SUCCESS;
}

void ProcessGroup::shutdown() {
  session_->shutDown();
}

void ProcessGroup::abort() {
  session_->fail("the process group was aborted");
  session_->host().abort();
}

bool ProcessGroup::supportsSplitting() const {
  return session_->host().supportsSplitting();
}

c10::intrusive_ptr<c10d::Backend> ProcessGroup::split(
    const c10::intrusive_ptr<c10d::Store>& store,
    const std::vector<int>& ranks,
    const c10::intrusive_ptr<c10d::Backend::Options>& options) {
  const auto mine = std::find(ranks.begin(), ranks.end(), getRank());
  auto host = session_->host().split(store, ranks, options);
  if (mine == ranks.end()) return nullptr;
  const int rank = static_cast<int>(mine - ranks.begin());
  auto own = c10::make_intrusive<GroupOptions>(*options_);
  if (options) {
    own->timeout = options->timeout;
    own->group_name = options->group_name;
    own->group_desc = options->group_desc;
    own->global_ranks_in_group = options->global_ranks_in_group;
  }
  auto part = c10::make_intrusive<ProcessGroup>(
      std::move(host), rank, static_cast<int>(ranks.size()), std::move(own));
  part->setBoundDeviceId(getBoundDeviceId());
  return part;
}

void ProcessGroup::eagerConnectSingleDevice(at::Device device) {
  if (!native_) return;
  native_->useDevice(device.index());
  native_->connect(device.index(), options_->timeout);
}

bool ProcessGroup::supportsCoalescing() const {
  return true;
}

void ProcessGroup::startCoalescing() {
  const std::lock_guard lock(batch_mutex_);
  batch_ = Batch{};
}

WorkPtr ProcessGroup::endCoalescing() {
  const std::lock_guard lock(batch_mutex_);
  TORCH_CHECK(batch_, "pccl: no batch of calls was begun");
  auto work = c10::make_intrusive<JointWork>(getRank(), std::move(*batch_));
  batch_.reset();
  return work;
}

// ---- collectives ----

WorkPtr ProcessGroup::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  const char* const name = "broadcast";
  const Tensor& tensor = requireOne(name, tensors);
  requireRank(name, options.rootRank, getSize());
  Call call = begin(OpType::BROADCAST, name, {tensor}, {tensor});
  parts_->broadcast(call, tensor, options.rootRank, options.timeout);
  return run(std::move(call));
}

WorkPtr ProcessGroup::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  const char* const name = "all_reduce";
  const Tensor& tensor = requireOne(name, tensors);
  Call call = begin(OpType::ALLREDUCE, name, {tensor}, {tensor});
  const auto reduction = planReduction(options.reduceOp, tensor.scalar_type());
  parts_->allreduce(call, reduction, {tensor}, options.timeout);
  return run(std::move(call));
}

WorkPtr ProcessGroup::allreduce_coalesced(
    Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
  Call call = begin(OpType::ALLREDUCE_COALESCED, "all_reduce_coalesced", tensors, tensors);
  // Tensors of one type travel together.
  Tensors rest = tensors;
  while (!rest.empty()) {
    const auto type = rest.front().scalar_type();
    const auto others = std::stable_partition(
        rest.begin(), rest.end(), [&](const Tensor& t) { return t.scalar_type() == type; });
    const auto reduction = planReduction(options.reduceOp, type);
    parts_->allreduce(call, reduction, Tensors(rest.begin(), others), options.timeout);
    rest.erase(rest.begin(), others);
  }
  return run(std::move(call));
}

WorkPtr ProcessGroup::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  const char* const name = "reduce";
  const Tensor& tensor = requireOne(name, tensors);
  requireRank(name, options.rootRank, getSize());
  Call call = begin(OpType::REDUCE, name, {tensor}, {tensor});
  const auto reduction = planReduction(options.reduceOp, tensor.scalar_type());
  parts_->reduce(call, reduction, tensor, options.rootRank, options.timeout);
  return run(std::move(call));
}

WorkPtr ProcessGroup::allgather(
    std::vector<Tensors>& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  const char* const name = "all_gather";
  const Tensors& parts = requireOne(name, outputs);
  const Tensor& input = requireOne(name, inputs);
  requireCount(name, "outputs", parts.size(), getSize());
  Call call = begin(OpType::ALLGATHER, name, {input}, parts);
  parts_->allgather(call, name, parts, input, options.timeout);
  return run(std::move(call));
}

WorkPtr ProcessGroup::_allgather_base(
    Tensor& output, Tensor& input, const c10d::AllgatherOptions& options) {
  Call call = begin(OpType::_ALLGATHER_BASE, "all_gather_into_tensor", {input}, {output});
  parts_->allgatherInto(call, output, input, options.timeout);
  return run(std::move(call));
}

WorkPtr ProcessGroup::allgather_coalesced(
    std::vector<Tensors>& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  const char* const name = "all_gather_coalesced";
  requireCount(name, "output lists", outputs.size(), getSize());
  Tensors all;
  for (const auto& list : outputs) all.insert(all.end(), list.begin(), list.end());
  Call call = begin(OpType::ALLGATHER_COALESCED, name, inputs, all);
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tensors parts;
    for (const auto& list : outputs) {
      TORCH_CHECK_VALUE(
          list.size() == inputs.size(),
          "pccl: ",
          name,
          ": ",
          list.size(),
          " outputs for ",
          inputs.size(),
          " inputs");
      parts.push_back(list[i]);
    }
    parts_->allgather(call, name, parts, inputs[i], options.timeout);
  }
  return run(std::move(call));
}

WorkPtr ProcessGroup::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  const char* const name = "all_gather_into_tensor_coalesced";
  requirePairs(name, outputs, inputs);
  Call call = begin(OpType::COALESCED, name, inputs, outputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    parts_->allgatherInto(call, outputs[i], inputs[i], options.timeout);
  }
  return run(std::move(call));
}

WorkPtr ProcessGroup::gather(
    std::vector<Tensors>& outputs, Tensors& inputs, const c10d::GatherOptions& options) {
  const char* const name = "gather";
  requireRank(name, options.rootRank, getSize());
  const Tensor& input = requireOne(name, inputs);
  Tensors parts;
  if (options.rootRank == getRank()) {
    parts = requireOne(name, outputs);
    requireCount(name, "outputs", parts.size(), getSize());
    Tensors all = parts;
    all.push_back(input);
    requireSameSize(name, all);
  } else {
    TORCH_CHECK_VALUE(outputs.empty(), "pccl: gather: only the root rank has outputs");
  }
  Call call = begin(OpType::GATHER, name, {input}, parts);
  parts_->gather(call, parts, input, options);
  return run(std::move(call));
}

WorkPtr ProcessGroup::scatter(
    Tensors& outputs, std::vector<Tensors>& inputs, const c10d::ScatterOptions& options) {
  const char* const name = "scatter";
  requireRank(name, options.rootRank, getSize());
  const Tensor& output = requireOne(name, outputs);
  Tensors parts;
  if (options.rootRank == getRank()) {
    parts = requireOne(name, inputs);
    requireCount(name, "inputs", parts.size(), getSize());
    Tensors all = parts;
    all.push_back(output);
    requireSameSize(name, all);
  } else {
    TORCH_CHECK_VALUE(inputs.empty(), "pccl: scatter: only the root rank has inputs");
  }
  Call call = begin(OpType::SCATTER, name, parts, {output});
  parts_->scatter(call, parts, output, options);
  return run(std::move(call));
}

WorkPtr ProcessGroup::reduce_scatter(
    Tensors& outputs, std::vector<Tensors>& inputs, const c10d::ReduceScatterOptions& options) {
  const char* const name = "reduce_scatter";
  const Tensor& output = requireOne(name, outputs);
  const Tensors& parts = requireOne(name, inputs);
  requireCount(name, "inputs", parts.size(), getSize());
  requireSameSize(name, {output, parts.at(static_cast<size_t>(getRank()))});
  Call call = begin(OpType::REDUCE_SCATTER, name, parts, {output});
  const auto reduction = planReduction(options.reduceOp, output.scalar_type());
  // The parts may differ in size, which no transport's reduce_scatter takes.
  for (int root = 0; root < getSize(); ++root) {
    const Tensor& part = parts[static_cast<size_t>(root)];
    parts_->reduceInto(call, reduction, output, part, root, options.timeout);
  }
  return run(std::move(call));
}

WorkPtr ProcessGroup::_reduce_scatter_base(
    Tensor& output, Tensor& input, const c10d::ReduceScatterOptions& options) {
  Call call = begin(OpType::_REDUCE_SCATTER_BASE, "reduce_scatter_tensor", {input}, {output});
  parts_->reduceScatterInto(call, output, input, options);
  return run(std::move(call));
}

WorkPtr ProcessGroup::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
  const char* const name = "reduce_scatter_tensor_coalesced";
  requirePairs(name, outputs, inputs);
  Call call = begin(OpType::COALESCED, name, inputs, outputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    parts_->reduceScatterInto(call, outputs[i], inputs[i], options);
  }
  return run(std::move(call));
}

WorkPtr ProcessGroup::alltoall_base(
    Tensor& output,
    Tensor& input,
    std::vector<int64_t>& output_splits,
    std::vector<int64_t>& input_splits,
    const c10d::AllToAllOptions& options) {
  const char* const name = "all_to_all_single";
  requireSameType(name, {output, input});
  const auto to_rows = requireSplits(name, output, output_splits, getSize());
  const auto from_rows = requireSplits(name, input, input_splits, getSize());
  Call call = begin(OpType::ALLTOALL_BASE, name, {input}, {output});
  parts_->alltoall(
      call,
      {output},
      bytesOfRows(output, to_rows),
      {input},
      bytesOfRows(input, from_rows),
      options);
  return run(std::move(call));
}

WorkPtr ProcessGroup::alltoall(
    Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) {
  const char* const name = "all_to_all";
  requireCount(name, "outputs", outputs.size(), getSize());
  requireCount(name, "inputs", inputs.size(), getSize());
  Tensors all = outputs;
  all.insert(all.end(), inputs.begin(), inputs.end());
  requireSameType(name, all);
  Call call = begin(OpType::ALLTOALL, name, inputs, outputs);
  parts_->alltoall(call, outputs, bytesOf(outputs), inputs, bytesOf(inputs), options);
  return run(std::move(call));
}

WorkPtr ProcessGroup::barrier(const c10d::BarrierOptions& options) {
  c10::Device device(kDeviceType, currentDevice());
  if (const auto bound = getBoundDeviceId()) device = *bound;
  if (!options.device_ids.empty()) {
    device.set_index(static_cast<c10::DeviceIndex>(options.device_ids.front()));
  }
  if (options.device && options.device->has_index()) device = *options.device;
  Call call{OpType::BARRIER, "barrier", device};
  call.blocks = true;
  call.parts.push_back(
      {{}, [=](c10d::Backend& host) { return host.barrier(options); }, nullptr, {}});
  return run(std::move(call));
}

// ---- messages ----

WorkPtr ProcessGroup::send(Tensors& tensors, int to, int tag) {
  const char* const name = "send";
  const Tensor& tensor = requireOne(name, tensors);
  requireRank(name, to, getSize());
  Call call = begin(OpType::SEND, name, {tensor}, {});
  call.text += c10::str(" to rank ", to);
  call.peer = to;
  parts_->send(call, tensor, to, tag);
  return run(std::move(call));
}

WorkPtr ProcessGroup::recv(Tensors& tensors, int from, int tag) {
  requireRank("recv", from, getSize());
  return receive(OpType::RECV, tensors, from, c10::str(" from rank ", from), tag);
}

WorkPtr ProcessGroup::recvAnysource(Tensors& tensors, int tag) {
  return receive(OpType::RECVANYSOURCE, tensors, kAnyRank, " from any rank", tag);
}

// ---- queueing ----

Call ProcessGroup::begin(
    OpType type, const char* name, const Tensors& inputs, const Tensors& outputs) const {
  Tensors all = inputs;
  all.insert(all.end(), outputs.begin(), outputs.end());
  Call call{
      type,
      describeCall(name, all.size() > 1 && !inputs.empty() ? inputs : all),
      requireOneDevice(name, all)};
  call.outputs = outputs;
  return call;
}

WorkPtr ProcessGroup::run(Call call) {
  // "pccl:all_reduce of 4 x Float" in a trace of the profiler.
  RECORD_FUNCTION("pccl:" + call.text, std::vector<c10::IValue>());
  WorkPtr work = session_->run(std::move(call));
  const std::lock_guard lock(batch_mutex_);
  if (batch_) batch_->push_back(work);
  return work;
}

WorkPtr ProcessGroup::receive(
    OpType type, Tensors& tensors, int from, const std::string& whence, int tag) {
  const char* const name = "recv";
  const Tensor& tensor = requireOne(name, tensors);
  Call call = begin(type, name, {}, {tensor});
  call.text += whence;
  call.peer = from;
  parts_->receive(call, tensor, from, tag);
  return run(std::move(call));
}

} // namespace puone::distributed
