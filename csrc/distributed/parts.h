// SPDX-License-Identifier: BSD-3-Clause
// The parts that collectives are made of: what is copied to the host, what is exchanged there, what
// is copied back. Each function adds parts to a call; a tensor without elements adds none. The
// arguments have been checked. NativeParts (native_parts.h) exchanges device memory instead.
#pragma once

#include <vector>

#include "distributed/arguments.h"
#include "distributed/reduction.h"
#include "distributed/session.h"

namespace puone::distributed {

// The bytes of a device tensor on the host, whatever its type.
at::Tensor hostBytes(const at::Tensor& tensor);

// One host buffer for several tensors, and the part of each in it.
struct Joined {
  at::Tensor whole;
  Tensors pieces;
};
Joined joinBytes(const Tensors& tensors);

// Pairs of one tensor each, without those that are empty.
std::vector<Copy> copies(const Tensors& device, const Tensors& host);

// Views of consecutive pieces of a long tensor that can be exchanged one by one, so that copies and
// the network overlap; the tensor itself if it is short or has gaps.
Tensors cut(const at::Tensor& tensor);

class Parts {
 public:
  using Milliseconds = std::chrono::milliseconds;

  Parts(int rank, int size) : rank_(rank), size_(size) {}
  virtual ~Parts() = default;

  virtual void broadcast(
      Call& call, const at::Tensor& tensor, int64_t root, Milliseconds timeout) const;

  // The tensors as one, all of one type.
  virtual void allreduce(
      Call& call, const Reduction& reduction, const Tensors& tensors, Milliseconds timeout) const;

  virtual void reduce(
      Call& call,
      const Reduction& reduction,
      const at::Tensor& tensor,
      int64_t root,
      Milliseconds timeout) const;

  // `output`: at the root only.
  virtual void reduceInto(
      Call& call,
      const Reduction& reduction,
      const at::Tensor& output,
      const at::Tensor& input,
      int64_t root,
      Milliseconds timeout) const;

  // Parts of one size are gathered; of different ones each is broadcast.
  virtual void allgather(
      Call& call,
      const char* name,
      const Tensors& parts,
      const at::Tensor& input,
      Milliseconds timeout) const;

  virtual void allgatherInto(
      Call& call, const at::Tensor& output, const at::Tensor& input, Milliseconds timeout) const;

  virtual void reduceScatterInto(
      Call& call,
      const at::Tensor& output,
      const at::Tensor& input,
      const c10d::ReduceScatterOptions& asked) const;

  // `parts`: at the root only, one for each rank.
  virtual void gather(
      Call& call,
      const Tensors& parts,
      const at::Tensor& input,
      const c10d::GatherOptions& options) const;
  virtual void scatter(
      Call& call,
      const Tensors& parts,
      const at::Tensor& output,
      const c10d::ScatterOptions& options) const;

  virtual void alltoall(
      Call& call,
      const Tensors& outputs,
      const std::vector<int64_t>& to_bytes,
      const Tensors& inputs,
      const std::vector<int64_t>& from_bytes,
      const c10d::AllToAllOptions& options) const;

  virtual void send(Call& call, const at::Tensor& tensor, int to, int tag) const;
  // `from`: a rank or kAnyRank.
  virtual void receive(Call& call, const at::Tensor& tensor, int from, int tag) const;

 protected:
  const int rank_;
  const int size_;

 private:
  void allreduceJoined(
      Call& call, const Reduction& reduction, const Tensors& tensors, Milliseconds timeout) const;
  // Parts of one size, or the one tensor that is made of them.
  void allgatherBytes(
      Call& call, const Tensors& outputs, const at::Tensor& input, Milliseconds timeout) const;
};

} // namespace puone::distributed
