// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/parts.h"

#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "distributed/staging.h"

namespace puone::distributed {
namespace {

using at::Tensor;

// Smaller ones cost more than they overlap: with 4 MiB an all_reduce on sim is a seventh slower.
constexpr int64_t kPieceBytes = int64_t{8} << 20;

int64_t totalBytes(const Tensors& tensors) {
  return std::accumulate(
      tensors.begin(), tensors.end(), int64_t{0}, [](int64_t sum, const Tensor& tensor) {
        return sum + static_cast<int64_t>(tensor.nbytes());
      });
}

Tensor joinReduced(
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

} // namespace

Tensor hostBytes(const Tensor& tensor) {
  return hostBuffer(static_cast<int64_t>(tensor.nbytes()), at::kByte);
}

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

void Parts::broadcast(Call& call, const Tensor& tensor, int64_t root, Milliseconds timeout) const {
  const bool is_root = root == rank_;
  c10d::BroadcastOptions options;
  options.rootRank = root;
  options.timeout = timeout;
  for (const Tensor& piece : cut(tensor)) {
    if (piece.numel() == 0) continue;
    const Tensor bytes = hostBytes(piece);
    call.parts.push_back(
        {is_root ? copies({piece}, {bytes}) : std::vector<Copy>{},
         [=](c10d::Backend& host) {
           Tensors message{bytes};
           return host.broadcast(message, options);
         },
         nullptr,
         is_root ? std::vector<Copy>{} : copies({piece}, {bytes})});
  }
}

void Parts::allreduce(
    Call& call, const Reduction& reduction, const Tensors& tensors, Milliseconds timeout) const {
  if (tensors.size() != 1) {
    allreduceJoined(call, reduction, tensors, timeout);
    return;
  }
  for (const Tensor& piece : cut(tensors.front())) {
    allreduceJoined(call, reduction, {piece}, timeout);
  }
}

void Parts::allreduceJoined(
    Call& call, const Reduction& reduction, const Tensors& tensors, Milliseconds timeout) const {
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
       [=, ranks = size_](c10d::Work&) { finishReduction(reduction, whole, ranks); },
       std::move(to_device)});
}

void Parts::reduce(
    Call& call,
    const Reduction& reduction,
    const Tensor& tensor,
    int64_t root,
    Milliseconds timeout) const {
  for (const Tensor& piece : cut(tensor)) {
    reduceInto(call, reduction, piece, piece, root, timeout);
  }
}

void Parts::reduceInto(
    Call& call,
    const Reduction& reduction,
    const Tensor& output,
    const Tensor& input,
    int64_t root,
    Milliseconds timeout) const {
  const Tensor from = reductionInput(reduction, input);
  if (from.numel() == 0) return;
  const Tensor whole = hostBuffer(from.numel(), reduction.type);
  const bool is_root = root == rank_;
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
       [=, ranks = size_](c10d::Work&) { finishReduction(reduction, whole, ranks); },
       is_root ? std::vector<Copy>{{reductionOutput(reduction, output), whole}}
               : std::vector<Copy>{}});
}

void Parts::allgather(
    Call& call,
    const char* name,
    const Tensors& parts,
    const Tensor& input,
    Milliseconds timeout) const {
  requireSameType(name, parts);
  requireSameSize(name, {parts.at(static_cast<size_t>(rank_)), input});
  const bool even = std::all_of(parts.begin(), parts.end(), [&](const Tensor& part) {
    return part.numel() == input.numel();
  });
  if (even) {
    allgatherBytes(call, parts, input, timeout);
    return;
  }
  for (int root = 0; root < size_; ++root) {
    const Tensor& part = parts[static_cast<size_t>(root)];
    if (part.numel() == 0) continue;
    const Tensor bytes = hostBytes(part);
    c10d::BroadcastOptions options;
    options.rootRank = root;
    options.timeout = timeout;
    call.parts.push_back(
        {root == rank_ ? copies({input}, {bytes}) : std::vector<Copy>{},
         [=](c10d::Backend& host) {
           Tensors message{bytes};
           return host.broadcast(message, options);
         },
         nullptr,
         copies({part}, {bytes})});
  }
}

void Parts::allgatherInto(
    Call& call, const Tensor& output, const Tensor& input, Milliseconds timeout) const {
  requireWhole("all_gather_into_tensor", output, input, size_);
  allgatherBytes(call, {output}, input, timeout);
}

void Parts::allgatherBytes(
    Call& call, const Tensors& outputs, const Tensor& input, Milliseconds timeout) const {
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

void Parts::reduceScatterInto(
    Call& call,
    const Tensor& output,
    const Tensor& input,
    const c10d::ReduceScatterOptions& asked) const {
  requireWhole("reduce_scatter_tensor", input, output, size_);
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
       [=, ranks = size_](c10d::Work&) { finishReduction(reduction, to, ranks); },
       {{part, to}}});
}

void Parts::alltoall(
    Call& call,
    const Tensors& outputs,
    const std::vector<int64_t>& to_bytes,
    const Tensors& inputs,
    const std::vector<int64_t>& from_bytes,
    const c10d::AllToAllOptions& options) const {
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

void Parts::gather(
    Call& call,
    const Tensors& parts,
    const Tensor& input,
    const c10d::GatherOptions& options) const {
  if (input.numel() == 0) return;
  const Tensor from = hostBytes(input);
  const Joined to = joinBytes(parts);
  call.parts.push_back(
      {copies({input}, {from}),
       [=](c10d::Backend& host) {
         std::vector<Tensors> results;
         if (!to.pieces.empty()) results.push_back(to.pieces);
         Tensors message{from};
         return host.gather(results, message, options);
       },
       nullptr,
       copies(parts, to.pieces)});
}

void Parts::scatter(
    Call& call,
    const Tensors& parts,
    const Tensor& output,
    const c10d::ScatterOptions& options) const {
  if (output.numel() == 0) return;
  const Tensor to = hostBytes(output);
  const Joined from = joinBytes(parts);
  call.parts.push_back(
      {copies(parts, from.pieces),
       [=](c10d::Backend& host) {
         std::vector<Tensors> messages;
         if (!from.pieces.empty()) messages.push_back(from.pieces);
         Tensors result{to};
         return host.scatter(result, messages, options);
       },
       nullptr,
       copies({output}, {to})});
}

void Parts::send(Call& call, const Tensor& tensor, int to, int tag) const {
  call.kind = Kind::kSend;
  const Tensor bytes = hostBytes(tensor);
  call.parts.push_back(
      {copies({tensor}, {bytes}),
       [=](c10d::Backend& host) {
         Tensors message{bytes};
         return host.send(message, to, tag);
       },
       nullptr,
       {}});
}

void Parts::receive(Call& call, const Tensor& tensor, int from, int tag) const {
  call.kind = Kind::kReceive;
  const auto source = std::make_shared<int>(from);
  if (from == kAnyRank) call.source_rank = source;
  const Tensor bytes = hostBytes(tensor);
  call.parts.push_back(
      {{},
       [=](c10d::Backend& host) {
         Tensors message{bytes};
         return from == kAnyRank ? host.recvAnysource(message, tag) : host.recv(message, from, tag);
       },
       [=](c10d::Work& work) {
         if (from == kAnyRank) *source = work.sourceRank();
       },
       copies({tensor}, {bytes})});
}

} // namespace puone::distributed
