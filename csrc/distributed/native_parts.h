// SPDX-License-Identifier: BSD-3-Clause
// The parts of collectives that the driver's library exchanges, from device memory to device
// memory. What the library cannot do goes through the host, as without it: reductions and types
// that it does not compute, and messages with tags, which it does not know. The ranks agree on
// that, because they agree on the call.
#pragma once

#include "distributed/native.h"
#include "distributed/parts.h"

namespace puone::distributed {

class LibraryCalls;

class NativeParts final : public Parts {
 public:
  NativeParts(
      std::shared_ptr<Native> native,
      int rank,
      int size,
      c10::intrusive_ptr<c10d::Backend::Options> options);

  void broadcast(
      Call& call, const at::Tensor& tensor, int64_t root, Milliseconds timeout) const override;
  void allreduce(
      Call& call,
      const Reduction& reduction,
      const Tensors& tensors,
      Milliseconds timeout) const override;
  void reduce(
      Call& call,
      const Reduction& reduction,
      const at::Tensor& tensor,
      int64_t root,
      Milliseconds timeout) const override;
  void reduceInto(
      Call& call,
      const Reduction& reduction,
      const at::Tensor& output,
      const at::Tensor& input,
      int64_t root,
      Milliseconds timeout) const override;
  void allgather(
      Call& call,
      const char* name,
      const Tensors& parts,
      const at::Tensor& input,
      Milliseconds timeout) const override;
  void allgatherInto(
      Call& call,
      const at::Tensor& output,
      const at::Tensor& input,
      Milliseconds timeout) const override;
  void reduceScatterInto(
      Call& call,
      const at::Tensor& output,
      const at::Tensor& input,
      const c10d::ReduceScatterOptions& asked) const override;
  void gather(
      Call& call,
      const Tensors& parts,
      const at::Tensor& input,
      const c10d::GatherOptions& options) const override;
  void scatter(
      Call& call,
      const Tensors& parts,
      const at::Tensor& output,
      const c10d::ScatterOptions& options) const override;
  void alltoall(
      Call& call,
      const Tensors& outputs,
      const std::vector<int64_t>& to_bytes,
      const Tensors& inputs,
      const std::vector<int64_t>& from_bytes,
      const c10d::AllToAllOptions& options) const override;
  void send(Call& call, const at::Tensor& tensor, int to, int tag) const override;
  void receive(Call& call, const at::Tensor& tensor, int from, int tag) const override;

 private:
  using Body = std::function<void(const LibraryCalls& library)>;

  void add(Call& call, Milliseconds timeout, Tensors uses, std::function<void(const Stream&)> queue)
      const;
  // Calls body(library) for the communicator of all ranks.
  void onCommunicator(const Stream& stream, Milliseconds timeout, const Body& body) const;
  // The same; what it calls is one piece of work.
  void inGroup(const Stream& stream, Milliseconds timeout, const Body& body) const;
  Milliseconds inForce(Milliseconds timeout) const;

  const std::shared_ptr<Native> native_;
  const c10::intrusive_ptr<c10d::Backend::Options> options_;
};

} // namespace puone::distributed
