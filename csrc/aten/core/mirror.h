// SPDX-License-Identifier: BSD-3-Clause
// A strided tensor's copy on the other side of the bus: same sizes, strides and math bits, so that
// an operator sees the same argument in either place.
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "runtime/stream.h"

namespace puone {

// Copies of one device's tensors to host memory. The contents are there after wait().
class ToHost {
 public:
  explicit ToHost(const Stream& stream) : stream_(stream) {}
  // Also waits, so that nothing is written to freed host memory; keep the copies until then.
  ~ToHost();
  ToHost(const ToHost&) = delete;
  ToHost& operator=(const ToHost&) = delete;

  // A host copy of `tensor`; with read == false its elements stay uninitialised.
  at::Tensor copy(const at::Tensor& tensor, bool read = true);

  // Host copies of tensors that lie in one storage, as views of one storage: what is written
  // through one of them is seen through the others.
  std::vector<at::Tensor> copyTogether(at::ArrayRef<at::Tensor> tensors);

  // One wait for all copies so far.
  void wait();

 private:
  Stream stream_;
  bool pending_ = false;
};

// Copies of host tensors to one device, in the order of its current stream. The host tensors may be
// freed after wait().
class ToDevice {
 public:
  explicit ToDevice(const Stream& stream) : stream_(stream) {}
  ~ToDevice(); // waits
  ToDevice(const ToDevice&) = delete;
  ToDevice& operator=(const ToDevice&) = delete;

  // A device copy of `host`.
  at::Tensor copy(const at::Tensor& host);

  // Makes `device` equal to `host`, resizing it if the sizes differ.
  void update(const at::Tensor& device, const at::Tensor& host);

  // Returns once no copy needs its source any more.
  void wait();

 private:
  void send(const at::Tensor& device, const at::Tensor& host);

  Stream stream_;
  bool pending_ = false;
};

} // namespace puone
