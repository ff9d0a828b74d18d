// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/process_group.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/record_function.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "distributed/arguments.h"
#include "distributed/reduction.h"
#include "distributed/session.h"
#include "distributed/staging.h"
#include "distributed/work.h"
#include "runtime/device.h"

namespace puone::distributed {
namespace {

using at::Tensor;
using c10d::OpType;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

// Long tensors are exchanged in pieces, so that copies and the network overlap.
constexpr int64_t kPieceBytes = int64_t{4} << 20;

// The bytes of a device tensor on the host, whatever its type.
Tensor hostBytes(const Tensor& tensor) {
  return hostBuffer(static_cast<int64_t>(tensor.nbytes()), at::kByte);
}

int64_t totalBytes(const Tensors& tensors) {
  return std::accumulate(
      tensors.begin(), tensors.end(), int64_t{0}, [](int64_t sum, const Tensor& tensor) {
        return sum + static_cast<int64_t>(tensor.nbytes());
      });
}

// One host buffer for several tensors, and the part of each in it.
struct Joined {
  Tensor whole;
  Tensors pieces;
};

Joined joinBytes(const Tensors& tensors) {
  Joined joined{hostBuffer(totalBytes(tensors), at::kByte), {}};
  int64_t offset = 0;
  for (const auto& tensor : tensors) {
    const auto bytes = static_cast<int64_t>(tensor.nbytes());
    joined.pieces.push_back(joined.whole.narrow(0, offset, bytes));
    offset += bytes;
  }
  return joined;
}

std::vector<Copy> copies(const Tensors& device, const Tensors& host) {
  std::vector<Copy> pairs;
  for (size_t i = 0; i < device.size(); ++i) {
    if (device[i].numel() > 0) pairs.push_back({device[i], host[i]});
  }
  return pairs;
}

// Views of consecutive pieces of a tensor that can be exchanged one by one; the tensor itself if it
// is short or has gaps.
Tensors cut(const Tensor& tensor) {
  const int64_t piece = std::max<int64_t>(1, kPieceBytes / static_cast<int64_t>(tensor.itemsize()));
  if (!tensor.is_contiguous() || tensor.numel() <= piece) return {tensor};
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const Tensor flat = tensor.view(-1);
  Tensors pieces;
  for (int64_t start = 0; start < flat.numel(); start += piece) {
    pieces.push_back(flat.narrow(0, start, std::min(piece, flat.numel() - start)));
  }
  return pieces;
}

class StagedProcessGroup final : public ProcessGroup {
 public:
  StagedProcessGroup(
      c10::intrusive_ptr<c10d::Backend> host,
      int rank,
      int size,
      c10::intrusive_ptr<Options> options)
      : ProcessGroup(rank, size),
        session_(Session::create(std::move(host), rank)),
        options_(std::move(options)),
        process_(getpid()) {}

  ~StagedProcessGroup() override {
    if (getpid() == process_) {
      session_->shutDown();
    } else { // a forked child: the threads that its members belong to do not exist
      new std::shared_ptr<Session>(std::move(session_));
    }
  }

  std::vector<std::string> pending() const override {
    return session_->pending();
  }

  c10::intrusive_ptr<Options> options() const override {
    return options_;
  }

  // ---- the group ----

  const std::string getBackendName() const override {
    return kBackendName;
  }

  c10::intrusive_ptr<c10d::Backend::Options> getBackendOptions() override {
    return options_;
  }

  void setTimeout(std::chrono::milliseconds timeout) override {
    session_->host().setTimeout(timeout);
    options_->timeout = timeout;
  }

  // Calls are numbered from 1; nothing has to be agreed on.
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override {
    return session_->callCount();
  }

  c10d::ErrorType getError() override {
    return session_->hasFailed() ? c10d::ErrorType::COMM_ERROR : c10d::ErrorType::SUCCESS;
  }

  void shutdown() override {
    session_->shutDown();
  }

  void abort() override {
    session_->fail("the process group was aborted");
    session_->host().abort();
  }

  bool supportsSplitting() const override {
    return session_->host().supportsSplitting();
  }

  c10::intrusive_ptr<c10d::Backend> split(
      const c10::intrusive_ptr<c10d::Store>& store,
      const std::vector<int>& ranks,
      const c10::intrusive_ptr<c10d::Backend::Options>& options) override {
    const auto mine = std::find(ranks.begin(), ranks.end(), getRank());
    auto host = session_->host().split(store, ranks, options);
    if (mine == ranks.end()) return nullptr;
    const int rank = static_cast<int>(mine - ranks.begin());
    auto own = c10::make_intrusive<Options>(*options_);
    if (options) {
      own->timeout = options->timeout;
      own->group_name = options->group_name;
      own->group_desc = options->group_desc;
      own->global_ranks_in_group = options->global_ranks_in_group;
    }
    auto part = create(std::move(host), rank, static_cast<int>(ranks.size()), std::move(own));
    part->setBoundDeviceId(getBoundDeviceId());
    return part;
  }

  // No call keeps the caller, so a batch needs nothing but one work for all.
  bool supportsCoalescing() const override {
    return true;
  }

  void startCoalescing() override {
    const std::lock_guard lock(batch_mutex_);
    batch_ = Batch{};
  }

  WorkPtr endCoalescing() override {
    const std::lock_guard lock(batch_mutex_);
    TORCH_CHECK(batch_, "pccl: no batch of calls was begun");
    auto work = c10::make_intrusive<JointWork>(getRank(), std::move(*batch_));
    batch_.reset();
    return work;
  }

  // ---- collectives ----

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    const char* const name = "broadcast";
    const Tensor& tensor = requireOne(name, tensors);
    requireRank(name, options.rootRank, getSize());
    Call call = begin(OpType::BROADCAST, name, {tensor}, {tensor});
    for (const Tensor& piece : cut(tensor))
      addBroadcast(call, piece, options.rootRank, options.timeout);
    return run(std::move(call));
  }

  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    const char* const name = "all_reduce";
    const Tensor& tensor = requireOne(name, tensors);
    Call call = begin(OpType::ALLREDUCE, name, {tensor}, {tensor});
    const auto reduction = planReduction(options.reduceOp, tensor.scalar_type());
    for (const Tensor& piece : cut(tensor)) addAllreduce(call, reduction, {piece}, options.timeout);
    return run(std::move(call));
  }

  WorkPtr allreduce_coalesced(
      Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override {
    Call call = begin(OpType::ALLREDUCE_COALESCED, "all_reduce_coalesced", tensors, tensors);
    // Tensors of one type travel together.
    Tensors rest = tensors;
    while (!rest.empty()) {
      const auto type = rest.front().scalar_type();
      const auto others = std::stable_partition(
          rest.begin(), rest.end(), [&](const Tensor& t) { return t.scalar_type() == type; });
      const auto reduction = planReduction(options.reduceOp, type);
      addAllreduce(call, reduction, Tensors(rest.begin(), others), options.timeout);
      rest.erase(rest.begin(), others);
    }
    return run(std::move(call));
  }

  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
    const char* const name = "reduce";
    const Tensor& tensor = requireOne(name, tensors);
    requireRank(name, options.rootRank, getSize());
    Call call = begin(OpType::REDUCE, name, {tensor}, {tensor});
    const auto reduction = planReduction(options.reduceOp, tensor.scalar_type());
    for (const Tensor& piece : cut(tensor)) {
      addReduce(call, reduction, piece, piece, options.rootRank, options.timeout);
    }
    return run(std::move(call));
  }

  WorkPtr allgather(
      std::vector<Tensors>& outputs,
      Tensors& inputs,
      const c10d::AllgatherOptions& options) override {
    const char* const name = "all_gather";
    const Tensors& parts = requireOne(name, outputs);
    const Tensor& input = requireOne(name, inputs);
    requireCount(name, "outputs", parts.size(), getSize());
    Call call = begin(OpType::ALLGATHER, name, {input}, parts);
    addAllgather(call, name, parts, input, options.timeout);
    return run(std::move(call));
  }

  WorkPtr _allgather_base(
      Tensor& output, Tensor& input, const c10d::AllgatherOptions& options) override {
    Call call = begin(OpType::_ALLGATHER_BASE, "all_gather_into_tensor", {input}, {output});
    addAllgatherBase(call, output, input, options.timeout);
    return run(std::move(call));
  }

  WorkPtr allgather_coalesced(
      std::vector<Tensors>& outputs,
      Tensors& inputs,
      const c10d::AllgatherOptions& options) override {
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
      addAllgather(call, name, parts, inputs[i], options.timeout);
    }
    return run(std::move(call));
  }

  WorkPtr allgather_into_tensor_coalesced(
      Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override {
    const char* const name = "all_gather_into_tensor_coalesced";
    requirePairs(name, outputs, inputs);
    Call call = begin(OpType::COALESCED, name, inputs, outputs);
    for (size_t i = 0; i < inputs.size(); ++i) {
      addAllgatherBase(call, outputs[i], inputs[i], options.timeout);
    }
    return run(std::move(call));
  }

  WorkPtr gather(
      std::vector<Tensors>& outputs, Tensors& inputs, const c10d::GatherOptions& options) override {
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
    if (input.numel() > 0) {
      const Tensor host_input = hostBytes(input);
      const Joined host_outputs = joinBytes(parts);
      call.parts.push_back(
          {copies({input}, {host_input}),
           [=](c10d::Backend& host) {
             std::vector<Tensors> to;
             if (!host_outputs.pieces.empty()) to.push_back(host_outputs.pieces);
             Tensors from{host_input};
             return host.gather(to, from, options);
           },
           nullptr,
           copies(parts, host_outputs.pieces)});
    }
    return run(std::move(call));
  }

  WorkPtr scatter(
      Tensors& outputs,
      std::vector<Tensors>& inputs,
      const c10d::ScatterOptions& options) override {
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
    if (output.numel() > 0) {
      const Tensor host_output = hostBytes(output);
      const Joined host_inputs = joinBytes(parts);
      call.parts.push_back(
          {copies(parts, host_inputs.pieces),
           [=](c10d::Backend& host) {
             std::vector<Tensors> from;
             if (!host_inputs.pieces.empty()) from.push_back(host_inputs.pieces);
             Tensors to{host_output};
             return host.scatter(to, from, options);
           },
           nullptr,
           copies({output}, {host_output})});
    }
    return run(std::move(call));
  }

  WorkPtr reduce_scatter(
      Tensors& outputs,
      std::vector<Tensors>& inputs,
      const c10d::ReduceScatterOptions& options) override {
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
      addReduce(call, reduction, part, root == getRank() ? output : part, root, options.timeout);
    }
    return run(std::move(call));
  }

  WorkPtr _reduce_scatter_base(
      Tensor& output, Tensor& input, const c10d::ReduceScatterOptions& options) override {
    Call call = begin(OpType::_REDUCE_SCATTER_BASE, "reduce_scatter_tensor", {input}, {output});
    addReduceScatterBase(call, output, input, options);
    return run(std::move(call));
  }

  WorkPtr reduce_scatter_tensor_coalesced(
      Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) override {
    const char* const name = "reduce_scatter_tensor_coalesced";
    requirePairs(name, outputs, inputs);
    Call call = begin(OpType::REDUCE_SCATTER_TENSOR_COALESCED, name, inputs, outputs);
    for (size_t i = 0; i < inputs.size(); ++i) {
      addReduceScatterBase(call, outputs[i], inputs[i], options);
    }
    return run(std::move(call));
  }

  WorkPtr alltoall_base(
      Tensor& output,
      Tensor& input,
      std::vector<int64_t>& output_splits,
      std::vector<int64_t>& input_splits,
      const c10d::AllToAllOptions& options) override {
    const char* const name = "all_to_all_single";
    requireSameType(name, {output, input});
    const auto to_rows = requireSplits(name, output, output_splits, getSize());
    const auto from_rows = requireSplits(name, input, input_splits, getSize());
    Call call = begin(OpType::ALLTOALL_BASE, name, {input}, {output});
    addAlltoall(
        call,
        {output},
        bytesOfRows(output, to_rows),
        {input},
        bytesOfRows(input, from_rows),
        options);
    return run(std::move(call));
  }

  WorkPtr alltoall(
      Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override {
    const char* const name = "all_to_all";
    requireCount(name, "outputs", outputs.size(), getSize());
    requireCount(name, "inputs", inputs.size(), getSize());
    Tensors all = outputs;
    all.insert(all.end(), inputs.begin(), inputs.end());
    requireSameType(name, all);
    Call call = begin(OpType::ALLTOALL, name, inputs, outputs);
    addAlltoall(call, outputs, bytesOf(outputs), inputs, bytesOf(inputs), options);
    return run(std::move(call));
  }

  // On the device of the options, the group's own or the current one. Covers what the current
  // stream of this device holds, and keeps the caller, as NCCL's does.
  WorkPtr barrier(const c10d::BarrierOptions& options) override {
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

  WorkPtr send(Tensors& tensors, int to, int tag) override {
    const char* const name = "send";
    const Tensor& tensor = requireOne(name, tensors);
    requireRank(name, to, getSize());
    Call call = begin(OpType::SEND, name, {tensor}, {});
    call.text += c10::str(" to rank ", to);
    call.kind = Kind::kSend;
    call.peer = to;
    const Tensor bytes = hostBytes(tensor);
    call.parts.push_back(
        {copies({tensor}, {bytes}),
         [=](c10d::Backend& host) {
           Tensors message{bytes};
           return host.send(message, to, tag);
         },
         nullptr,
         {}});
    return run(std::move(call));
  }

  WorkPtr recv(Tensors& tensors, int from, int tag) override {
    requireRank("recv", from, getSize());
    return receive(
        OpType::RECV,
        tensors,
        from,
        c10::str(" from rank ", from),
        [=](c10d::Backend& host, Tensors& message) { return host.recv(message, from, tag); });
  }

  WorkPtr recvAnysource(Tensors& tensors, int tag) override {
    return receive(
        OpType::RECVANYSOURCE,
        tensors,
        kAnyRank,
        " from any rank",
        [=](c10d::Backend& host, Tensors& message) { return host.recvAnysource(message, tag); });
  }

 private:
  using Batch = std::vector<WorkPtr>;

  Call begin(OpType type, const char* name, const Tensors& inputs, const Tensors& outputs) {
    Tensors all = inputs;
    all.insert(all.end(), outputs.begin(), outputs.end());
    Call call{
        type,
        describeCall(name, all.size() > 1 && !inputs.empty() ? inputs : all),
        requireOneDevice(name, all)};
    call.outputs = outputs;
    return call;
  }

  WorkPtr run(Call call) {
    // "pccl:all_reduce of 4 x Float" in a trace of the profiler.
    RECORD_FUNCTION("pccl:" + call.text, std::vector<c10::IValue>());
    WorkPtr work = session_->run(std::move(call));
    const std::lock_guard lock(batch_mutex_);
    if (batch_) batch_->push_back(work);
    return work;
  }

  static void requirePairs(const char* name, const Tensors& outputs, const Tensors& inputs) {
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

  static std::vector<int64_t> bytesOf(const Tensors& tensors) {
    std::vector<int64_t> bytes;
    for (const auto& tensor : tensors) bytes.push_back(static_cast<int64_t>(tensor.nbytes()));
    return bytes;
  }

  static std::vector<int64_t> bytesOfRows(const Tensor& tensor, std::vector<int64_t> rows) {
    const auto all = static_cast<int64_t>(tensor.nbytes());
    const int64_t row = tensor.size(0) == 0 ? 0 : all / tensor.size(0);
    for (int64_t& count : rows) count *= row;
    return rows;
  }

  void addBroadcast(
      Call& call, const Tensor& tensor, int64_t root, std::chrono::milliseconds timeout) const {
    if (tensor.numel() == 0) return;
    const Tensor bytes = hostBytes(tensor);
    const bool is_root = root == getRank();
    c10d::BroadcastOptions options;
    options.rootRank = root;
    options.timeout = timeout;
    call.parts.push_back(
        {is_root ? copies({tensor}, {bytes}) : std::vector<Copy>{},
         [=](c10d::Backend& host) {
           Tensors message{bytes};
           return host.broadcast(message, options);
         },
         nullptr,
         is_root ? std::vector<Copy>{} : copies({tensor}, {bytes})});
  }

  // The tensors as one, all of one type.
  void addAllreduce(
      Call& call,
      const Reduction& reduction,
      const Tensors& tensors,
      std::chrono::milliseconds timeout) const {
    std::vector<Copy> to_host;
    std::vector<Copy> to_device;
    const Tensor whole = joinReduced(reduction, tensors, to_host, to_device);
    if (whole.numel() == 0) return;
    c10d::AllreduceOptions options;
    options.reduceOp = reduction.op;
    options.timeout = timeout;
    call.parts.push_back(
        {std::move(to_host),
         [=](c10d::Backend& host) {
           Tensors message{whole};
           return host.allreduce(message, options);
         },
         [=, ranks = getSize()](c10d::Work&) { finishReduction(reduction, whole, ranks); },
         std::move(to_device)});
  }

  static Tensor joinReduced(
      const Reduction& reduction,
      const Tensors& tensors,
      std::vector<Copy>& to_host,
      std::vector<Copy>& to_device) {
    int64_t elements = 0;
    for (const auto& tensor : tensors) elements += reductionOutput(reduction, tensor).numel();
    const Tensor whole = hostBuffer(elements, reduction.type);
    int64_t offset = 0;
    for (const auto& tensor : tensors) {
      const Tensor output = reductionOutput(reduction, tensor);
      const Tensor part = whole.narrow(0, offset, output.numel());
      offset += output.numel();
      if (output.numel() == 0) continue;
      to_host.push_back({reductionInput(reduction, tensor), part});
      to_device.push_back({output, part});
    }
    return whole;
  }

  void addReduce(
      Call& call,
      const Reduction& reduction,
      const Tensor& input,
      const Tensor& output,
      int64_t root,
      std::chrono::milliseconds timeout) const {
    const Tensor from = reductionInput(reduction, input);
    if (from.numel() == 0) return;
    const Tensor whole = hostBuffer(from.numel(), reduction.type);
    const bool is_root = root == getRank();
    c10d::ReduceOptions options;
    options.reduceOp = reduction.op;
    options.rootRank = root;
    options.timeout = timeout;
    call.parts.push_back(
        {{{from, whole}},
         [=](c10d::Backend& host) {
           Tensors message{whole};
           return host.reduce(message, options);
         },
         [=, ranks = getSize()](c10d::Work&) { finishReduction(reduction, whole, ranks); },
         is_root ? std::vector<Copy>{{reductionOutput(reduction, output), whole}}
                 : std::vector<Copy>{}});
  }

  // Parts of one size are gathered; of different ones each is broadcast.
  void addAllgather(
      Call& call,
      const char* name,
      const Tensors& parts,
      const Tensor& input,
      std::chrono::milliseconds timeout) const {
    requireSameType(name, parts);
    requireSameSize(name, {parts.at(static_cast<size_t>(getRank())), input});
    const bool even = std::all_of(parts.begin(), parts.end(), [&](const Tensor& part) {
      return part.numel() == input.numel();
    });
    if (even) {
      addAllgatherBytes(call, parts, input, timeout);
      return;
    }
    for (int root = 0; root < getSize(); ++root) {
      const Tensor& part = parts[static_cast<size_t>(root)];
      if (part.numel() == 0) continue;
      const Tensor bytes = hostBytes(part);
      c10d::BroadcastOptions options;
      options.rootRank = root;
      options.timeout = timeout;
      call.parts.push_back(
          {root == getRank() ? copies({input}, {bytes}) : std::vector<Copy>{},
           [=](c10d::Backend& host) {
             Tensors message{bytes};
             return host.broadcast(message, options);
           },
           nullptr,
           copies({part}, {bytes})});
    }
  }

  void addAllgatherBase(
      Call& call,
      const Tensor& output,
      const Tensor& input,
      std::chrono::milliseconds timeout) const {
    requireWhole("all_gather_into_tensor", output, input, getSize());
    addAllgatherBytes(call, {output}, input, timeout);
  }

  void addAllgatherBytes(
      Call& call,
      const Tensors& outputs,
      const Tensor& input,
      std::chrono::milliseconds timeout) const {
    if (input.numel() == 0) return;
    const Tensor from = hostBytes(input);
    const Joined to = joinBytes(outputs);
    c10d::AllgatherOptions options;
    options.timeout = timeout;
    call.parts.push_back(
        {copies({input}, {from}),
         [=](c10d::Backend& host) {
           Tensor whole = to.whole;
           Tensor part = from;
           return host._allgather_base(whole, part, options);
         },
         nullptr,
         copies(outputs, to.pieces)});
  }

  void addReduceScatterBase(
      Call& call,
      const Tensor& output,
      const Tensor& input,
      const c10d::ReduceScatterOptions& asked) const {
    requireWhole("reduce_scatter_tensor", input, output, getSize());
    const auto reduction = planReduction(asked.reduceOp, input.scalar_type());
    const Tensor whole = reductionInput(reduction, input);
    if (whole.numel() == 0) return;
    const Tensor part = reductionOutput(reduction, output);
    const Tensor from = hostBuffer(whole.numel(), reduction.type);
    const Tensor to = hostBuffer(part.numel(), reduction.type);
    c10d::ReduceScatterOptions options;
    options.reduceOp = reduction.op;
    options.timeout = asked.timeout;
    call.parts.push_back(
        {{{whole, from}},
         [=](c10d::Backend& host) {
           Tensor result = to;
           Tensor message = from;
           return host._reduce_scatter_base(result, message, options);
         },
         [=, ranks = getSize()](c10d::Work&) { finishReduction(reduction, to, ranks); },
         {{part, to}}});
  }

  static void addAlltoall(
      Call& call,
      const Tensors& outputs,
      const std::vector<int64_t>& to_bytes,
      const Tensors& inputs,
      const std::vector<int64_t>& from_bytes,
      const c10d::AllToAllOptions& options) {
    const Joined to = joinBytes(outputs);
    const Joined from = joinBytes(inputs);
    call.parts.push_back(
        {copies(inputs, from.pieces),
         [=](c10d::Backend& host) {
           Tensor result = to.whole;
           Tensor message = from.whole;
           std::vector<int64_t> result_bytes = to_bytes;
           std::vector<int64_t> message_bytes = from_bytes;
           return host.alltoall_base(result, message, result_bytes, message_bytes, options);
         },
         nullptr,
         copies(outputs, to.pieces)});
  }

  template <class Post>
  WorkPtr receive(
      OpType type, Tensors& tensors, int from, const std::string& whence, const Post& post) {
    const char* const name = "recv";
    const Tensor& tensor = requireOne(name, tensors);
    Call call = begin(type, name, {}, {tensor});
    call.text += whence;
    call.kind = Kind::kReceive;
    call.peer = from;
    const auto source = std::make_shared<int>(from);
    if (from == kAnyRank) call.source_rank = source;
    const Tensor bytes = hostBytes(tensor);
    call.parts.push_back(
        {{},
         [=](c10d::Backend& host) {
           Tensors message{bytes};
           return post(host, message);
         },
         [=](c10d::Work& work) {
           if (from == kAnyRank) *source = work.sourceRank();
         },
         copies({tensor}, {bytes})});
    return run(std::move(call));
  }

  std::shared_ptr<Session> session_;
  const c10::intrusive_ptr<Options> options_;
  const pid_t process_;
  std::mutex batch_mutex_;
  std::optional<Batch> batch_; // the calls since startCoalescing()
};

} // namespace

c10::intrusive_ptr<ProcessGroup> ProcessGroup::create(
    c10::intrusive_ptr<c10d::Backend> host,
    int rank,
    int size,
    c10::intrusive_ptr<Options> options) {
  return c10::make_intrusive<StagedProcessGroup>(std::move(host), rank, size, std::move(options));
}

} // namespace puone::distributed
