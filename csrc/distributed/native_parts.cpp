// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/native_parts.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "distributed/staging.h"
#include "kernels/args.h"

namespace puone::distributed {
namespace {

using at::Tensor;

// The elements one after the other: the tensor itself, or a copy on the current stream.
Tensor dense(const Tensor& tensor) {
  return isDense(tensor) ? tensor : tensor.resolve_conj().resolve_neg().contiguous();
}

Tensors dense(const Tensors& tensors) {
  Tensors all;
  for (const auto& tensor : tensors) all.push_back(dense(tensor));
  return all;
}

Tensors withElements(const Tensors& tensors) {
  Tensors filled;
  for (const auto& tensor : tensors) {
    if (tensor.numel() > 0) filled.push_back(tensor);
  }
  return filled;
}

uint64_t bytesOf(const Tensor& tensor) {
  return static_cast<uint64_t>(tensor.nbytes());
}

// What a tensor is received in: itself, or memory that is copied to it.
class Destination {
 public:
  explicit Destination(const Tensor& tensor)
      : tensor_(tensor),
        memory_(isDense(tensor) ? tensor : at::empty(tensor.sizes(), tensor.options())) {}
  const Tensor& memory() const {
    return memory_;
  }
  void* data() const {
    return memory_.data_ptr();
  }
  uint64_t bytes() const {
    return bytesOf(memory_);
  }
  // Queues on the current stream what is left to do.
  void finish() const {
    if (!memory_.is_same(tensor_)) tensor_.copy_(memory_);
  }

 private:
  const Tensor tensor_;
  const Tensor memory_;
};

// How a library computes a reduction.
struct Computation {
  int32_t type;
  puone_collective_reduction reduction;
};

std::optional<int32_t> elementType(at::ScalarType type) {
  switch (type) {
    case at::kBool:
    case at::kByte:
      return PUONE_UINT8;
    case at::kChar:
      return PUONE_INT8;
    case at::kInt:
      return PUONE_INT32;
    case at::kLong:
      return PUONE_INT64;
    case at::kHalf:
      return PUONE_FLOAT16;
    case at::kBFloat16:
      return PUONE_BFLOAT16;
    case at::kFloat:
      return PUONE_FLOAT32;
    case at::kDouble:
      return PUONE_FLOAT64;
    default:
      return std::nullopt;
  }
}

std::optional<puone_collective_reduction> reductionOf(const Reduction& reduction) {
  using Op = c10d::ReduceOp::RedOpType;
  if (reduction.average) return PUONE_COLLECTIVE_AVERAGE;
  switch (reduction.op) {
    case Op::SUM:
      return PUONE_COLLECTIVE_SUM;
    case Op::PRODUCT:
      return PUONE_COLLECTIVE_PRODUCT;
    case Op::MIN:
      return PUONE_COLLECTIVE_MIN;
    case Op::MAX:
      return PUONE_COLLECTIVE_MAX;
    default:
      return std::nullopt;
  }
}

// Nothing if it has to be computed on the host.
std::optional<Computation> computation(const Reduction& reduction, at::ScalarType of_tensor) {
  const auto type = elementType(reduction.as_real ? c10::toRealValueType(of_tensor) : of_tensor);
  const auto operation = reductionOf(reduction);
  if (!type || !operation) return std::nullopt;
  return Computation{*type, *operation};
}

Tensors joined(const Tensors& one, const Tensors& other) {
  Tensors all = one;
  all.insert(all.end(), other.begin(), other.end());
  return all;
}

// What one rank gets of an all_to_all.
struct Piece {
  int64_t peer;
  size_t tensor;
  uint64_t offset; // bytes
  uint64_t bytes;
};

// One tensor for each rank, or a single one that is cut.
template <class Body>
void forEachPiece(size_t tensors, const std::vector<int64_t>& bytes, const Body& body) {
  const bool is_cut = tensors != bytes.size();
  uint64_t offset = 0;
  for (size_t peer = 0; peer < bytes.size(); ++peer) {
    const auto length = static_cast<uint64_t>(bytes[peer]);
    const Piece piece{static_cast<int64_t>(peer), is_cut ? 0 : peer, is_cut ? offset : 0, length};
    if (length > 0) body(piece);
    offset += length;
  }
}

} // namespace

// The library's calls on one communicator and stream. Each throws c10::DistBackendError.
class LibraryCalls {
 public:
  LibraryCalls(puone_communicator communicator, puone_stream stream)
      : api_(Native::api()), communicator_(communicator), stream_(stream) {}

  void begin() const {
    requireDone(api_.group_begin(communicator_), "collective.group_begin");
  }
  void end() const {
    requireDone(api_.group_end(communicator_), "collective.group_end");
  }
  // The end of a group in which a call has failed.
  void abandon() const noexcept {
    api_.group_end(communicator_);
  }
  void broadcast(const void* from, void* to, uint64_t bytes, int64_t root) const {
    requireDone(
        api_.broadcast(communicator_, from, to, bytes, PUONE_UINT8, rankOf(root), stream_),
        "collective.broadcast");
  }
  void allGather(const void* from, void* to, uint64_t bytes) const {
    requireDone(
        api_.all_gather(communicator_, from, to, bytes, PUONE_UINT8, stream_),
        "collective.all_gather");
  }
  void send(const void* from, uint64_t bytes, int64_t peer) const {
    requireDone(
        api_.send(communicator_, from, bytes, PUONE_UINT8, rankOf(peer), stream_),
        "collective.send");
  }
  void receive(void* to, uint64_t bytes, int64_t peer) const {
    requireDone(
        api_.recv(communicator_, to, bytes, PUONE_UINT8, rankOf(peer), stream_), "collective.recv");
  }
  void allReduce(const Tensor& from, void* to, const Computation& how) const {
    requireDone(
        api_.all_reduce(
            communicator_,
            from.const_data_ptr(),
            to,
            elementsOf(from),
            how.type,
            how.reduction,
            stream_),
        "collective.all_reduce");
  }
  void reduce(const Tensor& from, void* to, const Computation& how, int64_t root) const {
    requireDone(
        api_.reduce(
            communicator_,
            from.const_data_ptr(),
            to,
            elementsOf(from),
            how.type,
            how.reduction,
            rankOf(root),
            stream_),
        "collective.reduce");
  }
  void reduceScatter(const Tensor& from, void* to, const Computation& how, int ranks) const {
    requireDone(
        api_.reduce_scatter(
            communicator_,
            from.const_data_ptr(),
            to,
            elementsOf(from) / static_cast<uint64_t>(ranks),
            how.type,
            how.reduction,
            stream_),
        "collective.reduce_scatter");
  }

 private:
  static int32_t rankOf(int64_t rank) {
    return static_cast<int32_t>(rank);
  }
  static uint64_t elementsOf(const Tensor& tensor) {
    return static_cast<uint64_t>(tensor.numel());
  }

  const puone_collective_api& api_;
  const puone_communicator communicator_;
  const puone_stream stream_;
};

NativeParts::NativeParts(
    std::shared_ptr<Native> native,
    int rank,
    int size,
    c10::intrusive_ptr<c10d::Backend::Options> options)
    : Parts(rank, size), native_(std::move(native)), options_(std::move(options)) {}

void NativeParts::broadcast(
    Call& call, const Tensor& tensor, int64_t root, Milliseconds timeout) const {
  if (tensor.numel() == 0) return;
  add(call, timeout, {tensor}, [=, this](const Stream& stream) {
    const Destination memory(root == rank_ ? dense(tensor) : tensor);
    onCommunicator(stream, timeout, [&](const LibraryCalls& library) {
      library.broadcast(memory.data(), memory.data(), bytesOf(tensor), root);
    });
    memory.finish();
  });
}

void NativeParts::allreduce(
    Call& call, const Reduction& reduction, const Tensors& tensors, Milliseconds timeout) const {
  const auto how = computation(reduction, tensors.front().scalar_type());
  if (!how) {
    Parts::allreduce(call, reduction, tensors, timeout);
    return;
  }
  const Tensors filled = withElements(tensors);
  if (filled.empty()) return;
  add(call, timeout, filled, [=, this](const Stream& stream) {
    Tensors from;
    std::vector<Destination> to;
    for (const auto& tensor : filled) {
      from.push_back(dense(reductionInput(reduction, tensor)));
      to.emplace_back(reductionOutput(reduction, tensor));
    }
    inGroup(stream, timeout, [&](const LibraryCalls& library) {
      for (size_t i = 0; i < to.size(); ++i) library.allReduce(from[i], to[i].data(), *how);
    });
    for (const auto& each : to) each.finish();
  });
}

void NativeParts::reduce(
    Call& call,
    const Reduction& reduction,
    const Tensor& tensor,
    int64_t root,
    Milliseconds timeout) const {
  if (computation(reduction, tensor.scalar_type())) {
    reduceInto(call, reduction, tensor, tensor, root, timeout);
  } else {
    Parts::reduce(call, reduction, tensor, root, timeout);
  }
}

void NativeParts::reduceInto(
    Call& call,
    const Reduction& reduction,
    const Tensor& output,
    const Tensor& input,
    int64_t root,
    Milliseconds timeout) const {
  const auto how = computation(reduction, input.scalar_type());
  if (!how) {
    Parts::reduceInto(call, reduction, output, input, root, timeout);
    return;
  }
  if (input.numel() == 0) return;
  add(call, timeout, {input, output}, [=, this](const Stream& stream) {
    const Tensor from = dense(reductionInput(reduction, input));
    const Destination to(root == rank_ ? reductionOutput(reduction, output) : from);
    onCommunicator(stream, timeout, [&](const LibraryCalls& library) {
      library.reduce(from, to.data(), *how, root);
    });
    to.finish();
  });
}

void NativeParts::allgather(
    Call& call,
    const char* name,
    const Tensors& parts,
    const Tensor& input,
    Milliseconds timeout) const {
  requireSameType(name, parts);
  requireSameSize(name, {parts.at(static_cast<size_t>(rank_)), input});
  if (withElements(parts).empty()) return;
  // A broadcast for each part, so that they may be of any size and anywhere.
  add(call, timeout, joined(parts, {input}), [=, this](const Stream& stream) {
    const Tensor from = dense(input);
    const std::vector<Destination> to(parts.begin(), parts.end());
    inGroup(stream, timeout, [&](const LibraryCalls& library) {
      for (int root = 0; root < size_; ++root) {
        const auto& part = to[static_cast<size_t>(root)];
        if (part.bytes() == 0) continue;
        const void* own = root == rank_ ? from.const_data_ptr() : part.data();
        library.broadcast(own, part.data(), part.bytes(), root);
      }
    });
    for (const auto& each : to) each.finish();
  });
}

void NativeParts::allgatherInto(
    Call& call, const Tensor& output, const Tensor& input, Milliseconds timeout) const {
  requireWhole("all_gather_into_tensor", output, input, size_);
  if (input.numel() == 0) return;
  add(call, timeout, {output, input}, [=, this](const Stream& stream) {
    const Tensor from = dense(input);
    const Destination to(output);
    onCommunicator(stream, timeout, [&](const LibraryCalls& library) {
      library.allGather(from.const_data_ptr(), to.data(), bytesOf(from));
    });
    to.finish();
  });
}

void NativeParts::reduceScatterInto(
    Call& call,
    const Tensor& output,
    const Tensor& input,
    const c10d::ReduceScatterOptions& asked) const {
  requireWhole("reduce_scatter_tensor", input, output, size_);
  const auto reduction = planReduction(asked.reduceOp, input.scalar_type());
  const auto how = computation(reduction, input.scalar_type());
  if (!how) {
    Parts::reduceScatterInto(call, output, input, asked);
    return;
  }
  if (input.numel() == 0) return;
  const Milliseconds timeout = asked.timeout;
  add(call, timeout, {output, input}, [=, this](const Stream& stream) {
    const Tensor from = dense(reductionInput(reduction, input));
    const Destination to(reductionOutput(reduction, output));
    onCommunicator(stream, timeout, [&](const LibraryCalls& library) {
      library.reduceScatter(from, to.data(), *how, size_);
    });
    to.finish();
  });
}

void NativeParts::gather(
    Call& call,
    const Tensors& parts,
    const Tensor& input,
    const c10d::GatherOptions& options) const {
  if (input.numel() == 0) return;
  add(call, options.timeout, joined(parts, {input}), [=, this](const Stream& stream) {
    const Tensor from = dense(input);
    const std::vector<Destination> to(parts.begin(), parts.end()); // at the root only
    inGroup(stream, options.timeout, [&](const LibraryCalls& library) {
      library.send(from.const_data_ptr(), bytesOf(from), options.rootRank);
      for (size_t peer = 0; peer < to.size(); ++peer) {
        library.receive(to[peer].data(), to[peer].bytes(), static_cast<int64_t>(peer));
      }
    });
    for (const auto& each : to) each.finish();
  });
}

void NativeParts::scatter(
    Call& call,
    const Tensors& parts,
    const Tensor& output,
    const c10d::ScatterOptions& options) const {
  if (output.numel() == 0) return;
  add(call, options.timeout, joined(parts, {output}), [=, this](const Stream& stream) {
    const Tensors from = dense(parts); // at the root only
    const Destination to(output);
    inGroup(stream, options.timeout, [&](const LibraryCalls& library) {
      for (size_t peer = 0; peer < from.size(); ++peer) {
        library.send(from[peer].const_data_ptr(), bytesOf(from[peer]), static_cast<int64_t>(peer));
      }
      library.receive(to.data(), to.bytes(), options.rootRank);
    });
    to.finish();
  });
}

void NativeParts::alltoall(
    Call& call,
    const Tensors& outputs,
    const std::vector<int64_t>& to_bytes,
    const Tensors& inputs,
    const std::vector<int64_t>& from_bytes,
    const c10d::AllToAllOptions& options) const {
  add(call, options.timeout, joined(outputs, inputs), [=, this](const Stream& stream) {
    const Tensors from = dense(inputs);
    const std::vector<Destination> to(outputs.begin(), outputs.end());
    inGroup(stream, options.timeout, [&](const LibraryCalls& library) {
      forEachPiece(from.size(), from_bytes, [&](const Piece& piece) {
        const auto* start = static_cast<const char*>(from[piece.tensor].const_data_ptr());
        library.send(start + piece.offset, piece.bytes, piece.peer);
      });
      forEachPiece(to.size(), to_bytes, [&](const Piece& piece) {
        auto* start = static_cast<char*>(to[piece.tensor].data());
        library.receive(start + piece.offset, piece.bytes, piece.peer);
      });
    });
    for (const auto& each : to) each.finish();
  });
}

// ---- messages ----

void NativeParts::send(Call& call, const Tensor& tensor, int to, int tag) const {
  if (tag != 0) {
    Parts::send(call, tensor, to, tag);
    return;
  }
  native_->useDevice(call.device.index());
  call.kind = Kind::kNativeSend;
  const Tensor from = dense(tensor);
  Part part;
  part.exchange = [native = native_,
                   device = call.device.index(),
                   start = from.const_data_ptr(),
                   bytes = static_cast<int64_t>(from.nbytes()),
                   to,
                   timeout = options_->timeout](c10d::Backend& host) {
    native->send(host, device, start, bytes, to, timeout);
    return c10::intrusive_ptr<c10d::Work>();
  };
  part.uses = {from};
  call.parts.push_back(std::move(part));
}

void NativeParts::receive(Call& call, const Tensor& tensor, int from, int tag) const {
  if (tag != 0) {
    Parts::receive(call, tensor, from, tag);
    return;
  }
  native_->useDevice(call.device.index());
  call.kind = Kind::kNativeReceive;
  const auto source = std::make_shared<int>(from);
  if (from == kAnyRank) call.source_rank = source;
  const Destination to(tensor);
  Part part;
  part.exchange = [native = native_,
                   device = call.device.index(),
                   start = to.data(),
                   bytes = static_cast<int64_t>(to.bytes()),
                   from,
                   source,
                   timeout = options_->timeout](c10d::Backend& host) {
    *source = native->receive(host, device, start, bytes, from, timeout);
    return c10::intrusive_ptr<c10d::Work>();
  };
  part.uses = {tensor, to.memory()};
  part.last = [to] { to.finish(); };
  call.parts.push_back(std::move(part));
}

// ---- queueing ----

void NativeParts::add(
    Call& call,
    Milliseconds timeout,
    Tensors uses,
    std::function<void(const Stream&)> queue) const {
  native_->useDevice(call.device.index());
  Part part;
  part.queue = std::move(queue);
  part.uses = std::move(uses);
  part.timeout = inForce(timeout);
  call.parts.push_back(std::move(part));
}

void NativeParts::onCommunicator(
    const Stream& stream, Milliseconds timeout, const Body& body) const {
  const auto& communicator = native_->connect(stream.deviceIndex(), inForce(timeout));
  body(LibraryCalls(communicator.handle(), stream.handle()));
}

void NativeParts::inGroup(const Stream& stream, Milliseconds timeout, const Body& body) const {
  onCommunicator(stream, timeout, [&](const LibraryCalls& library) {
    library.begin();
    try {
      body(library);
    } catch (...) {
      library.abandon();
      throw;
    }
    library.end();
  });
}

Parts::Milliseconds NativeParts::inForce(Milliseconds timeout) const {
  return timeout == c10d::kUnsetTimeout ? options_->timeout : timeout;
}

} // namespace puone::distributed
