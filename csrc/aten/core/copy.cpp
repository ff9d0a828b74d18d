// SPDX-License-Identifier: BSD-3-Clause
// Copies between any two of host, device and peer device: every Tensor.copy_, .to, .cpu, .clone and
// .contiguous ends here. The device handles casts, strides and conj or neg bits; bytes cross the
// bus in one piece.
#include <ATen/MemoryOverlap.h>
#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <torch/library.h>

#include "aten/core/copy_ops.h"
#include "aten/core/host_copy.h"
#include "aten/core/launch.h"
#include "aten/core/operands.h"
#include "aten/core/transfer.h"
#include "runtime/capture.h"
#include "runtime/device.h"
#include "runtime/event.h"
#include "runtime/host_allocator.h"
#include "runtime/stream.h"

namespace puone {
namespace {

using at::Tensor;

bool onDevice(const Tensor& tensor) {
  return tensor.device().type() == kDeviceType;
}

// Both tensors fill one gapless range in the same order, so their elements correspond byte by byte.
bool sameLayout(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() &&
         ((a.is_contiguous() && b.is_contiguous()) ||
          (a.is_non_overlapping_and_dense() && a.strides() == b.strides()));
}

bool isRaw(const Tensor& dst, const Tensor& src) {
  return dst.scalar_type() == src.scalar_type() && sameMathBits(dst, src) && sameLayout(dst, src);
}

bool isSameView(const Tensor& a, const Tensor& b) {
  return a.is_alias_of(b) && a.storage_offset() == b.storage_offset() &&
         a.scalar_type() == b.scalar_type() && a.strides() == b.strides() &&
         a.sizes() == b.sizes() && sameMathBits(a, b);
}

// An uninitialised tensor with the dtype and math bits of `like`, and with its strides where they
// leave no gap.
Tensor buffer(const Tensor& like, c10::Device device) {
  const auto options = like.options().device(device).pinned_memory(false);
  Tensor result = like.is_non_overlapping_and_dense()
                      ? at::empty_strided(like.sizes(), like.strides(), options)
                      : at::empty(like.sizes(), options);
  copyMathBits(result, like);
  return result;
}

// ---- device to device ----

// Orders `stream` with the current stream of another device both ways, as a copy on one stream
// would be ordered: it starts after what the peer has queued, and what the peer queues later sees
// it.
class PeerBarrier {
 public:
  PeerBarrier(const Stream& stream, c10::DeviceIndex peer)
      : stream_(stream), peer_(getCurrentStream(peer)), active_(peer != stream.deviceIndex()) {
    if (active_) order(peer_, stream_);
  }

  void release() const {
    if (active_) order(stream_, peer_);
  }

 private:
  static void order(const Stream& first, const Stream& then) {
    Event event;
    event.record(first);
    event.block(then);
  }

  Stream stream_;
  Stream peer_;
  bool active_;
};

void launchCopy(const Tensor& dst, const Tensor& src, const Stream& stream) {
  const auto iter = at::TensorIteratorConfig()
                        .add_output(dst)
                        .add_const_input(src)
                        .resize_outputs(false)
                        .check_all_same_dtype(false)
                        .check_all_same_device(false)
                        .build();
  const auto fill = [&iter](auto& args) {
    setShape(args, iter);
    setOperand(args.out, iter, 0);
    setOperand(args.in, iter, 1);
  };
  if (dst.scalar_type() == src.scalar_type() && sameMathBits(dst, src)) {
    puone_copy_bits_args args{};
    args.element_size = static_cast<int32_t>(dst.itemsize());
    fill(args);
    launchKernel(kernel::copy_bits, args, stream);
  } else {
    puone_copy_args args{};
    args.out_dtype = kernelDtype(dst.scalar_type()).value();
    args.in_dtype = kernelDtype(src.scalar_type()).value();
    args.conj = dst.is_conj() != src.is_conj();
    args.neg = dst.is_neg() != src.is_neg();
    fill(args);
    launchKernel(kernel::copy, args, stream);
  }
}

void throughHost(const Tensor& dst, const Tensor& src) {
  writeFromHost(dst, readToHost(src));
}

void copyOnDevice(const Tensor& dst, const Tensor& src) {
  const c10::DeviceIndex dst_device = dst.device().index();
  const c10::DeviceIndex src_device = src.device().index();
  const bool raw = isRaw(dst, src);
  if (!(raw || hasCopyKernel(dst, src)) || !canAccessPeer(src_device, dst_device)) {
    throughHost(dst, src);
    return;
  }
  if (dst.is_neg() && dst.scalar_type() != src.scalar_type()) {
    // The kernel negates before it casts, which is wrong for an unsigned source.
    copyOnDevice(dst, src.to(dst.scalar_type()));
    return;
  }
  // The source's device does the work, as on CUDA.
  const Stream stream = getCurrentStream(src_device);
  const PeerBarrier barrier(stream, dst_device);
  if (raw) {
    at::assert_no_partial_overlap(dst, src);
    if (dst.data_ptr() != src.const_data_ptr()) {
      queueOnDevice(dst.data_ptr(), src.const_data_ptr(), dst.nbytes(), stream);
    }
  } else {
    launchCopy(dst, src, stream);
  }
  barrier.release();
}

// ---- between host and device ----

void sendRaw(const Tensor& dst, const Tensor& src, bool non_blocking) {
  const Stream stream = getCurrentStream(dst.device().index());
  void* to = dst.data_ptr();
  const void* from = src.const_data_ptr();
  if (!non_blocking) {
    queueToDevice(to, from, src.nbytes(), stream);
    stream.synchronize();
  } else if (isPinned(from)) {
    queueToDevice(to, from, src.nbytes(), stream);
    keepForStream(src, stream);
  } else {
    // The caller may change the source at once, as it may with any other pageable source.
    stageToDevice(to, from, src.nbytes(), stream);
  }
}

void receiveRaw(const Tensor& dst, const Tensor& src, bool non_blocking) {
  const Stream stream = getCurrentStream(src.device().index());
  void* to = dst.data_ptr();
  queueToHost(to, src.const_data_ptr(), src.nbytes(), stream);
  if (non_blocking && isPinned(to)) {
    keepForStream(dst, stream);
  } else {
    // Pageable memory would be read by the caller before it is written.
    stream.synchronize();
  }
}

void copyToDevice(const Tensor& dst, const Tensor& src, bool non_blocking) {
  if (isRaw(dst, src)) {
    sendRaw(dst, src, non_blocking);
    return;
  }
  Tensor host = hasCopyKernel(dst, src) ? src : src.to(dst.scalar_type());
  if (!hasCopyKernel(dst, host)) {
    writeFromHost(dst, src);
    return;
  }
  if (!host.is_non_overlapping_and_dense()) host = host.contiguous();
  const Tensor staging = buffer(host, dst.device());
  sendRaw(staging, host, non_blocking);
  copyOnDevice(dst, staging.expand(dst.sizes()));
  if (!non_blocking) getCurrentStream(dst.device().index()).synchronize();
}

void copyToHost(const Tensor& dst, const Tensor& src, bool non_blocking) {
  if (isRaw(dst, src)) {
    receiveRaw(dst, src, non_blocking);
    return;
  }
  // The device does what it can; the host does the remaining cast or scatter.
  if (!hasCopyKernel(src, src)) {
    dst.copy_(readToHost(src));
    return;
  }
  const Tensor staging = buffer(hasCopyKernel(dst, src) ? dst : src, src.device());
  copyOnDevice(staging, src);
  if (isRaw(dst, staging)) {
    receiveRaw(dst, staging, non_blocking);
  } else {
    const Tensor host = buffer(staging, c10::kCPU);
    receiveRaw(host, staging, /*non_blocking=*/false);
    dst.copy_(host);
  }
}

// ---- operators ----

// A CPU tensor without dimensions stands for a number, as in every operator: in a graph the number
// becomes an argument of the captured work.
bool isCapturedNumber(const Tensor& src, const Tensor& dst) {
  return src.dim() == 0 && src.is_cpu() && onDevice(dst) &&
         isCapturing(getCurrentStream(dst.device().index())) && !isPinned(src.const_data_ptr());
}

Tensor copyFrom(const Tensor& self, const Tensor& dst, bool non_blocking) {
  TORCH_CHECK(self.defined() && dst.defined(), "puone: copy of an undefined tensor");
  if (isSameView(self, dst)) return dst;
  const Tensor src = self.sizes() == dst.sizes() ? self : self.expand(dst.sizes());
  at::assert_no_internal_overlap(dst);
  if (dst.numel() == 0) return dst;
  if (src.is_complex() && !dst.is_complex() && dst.scalar_type() != c10::kBool) {
    TORCH_WARN_ONCE("Casting complex values to real discards the imaginary part");
  }
  if (isCapturedNumber(self, dst)) return dst.fill_(self);
  // [quote: directions]
  if (onDevice(src) && onDevice(dst)) {
    copyOnDevice(dst, src);
  } else if (onDevice(dst) && src.is_cpu()) {
    // Only the elements that exist cross the bus; they are repeated on the device.
    copyToDevice(dst, self.numel() < src.numel() ? self : src, non_blocking);
  } else if (onDevice(src) && dst.is_cpu()) {
    copyToHost(dst, src, non_blocking);
  } else {
    throughHost(dst, src);
  }
  // [end: directions]
  return dst;
}

Tensor copyFromAndResize(const Tensor& self, const Tensor& dst) {
  if (dst.sizes() != self.sizes()) dst.resize_(self.sizes());
  return copyFrom(self, dst, /*non_blocking=*/false);
}

// The kernels apply the math bits, so they are not resolved before: resolving is itself a copy.
void skipMathBits(torch::Library& m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
  m.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough());
}

} // namespace

TORCH_LIBRARY_IMPL(aten, Conjugate, m) {
  skipMathBits(m);
}

TORCH_LIBRARY_IMPL(aten, Negative, m) {
  skipMathBits(m);
}

} // namespace puone

#include "aten/core/copy_registrations.inc"
