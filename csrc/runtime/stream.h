// SPDX-License-Identifier: BSD-3-Clause
// Streams: a default stream per device, a pool of 32 per device and priority, and the current
// stream of each (thread, device). Streams are created on first use and live as long as the
// process, so a Stream is a plain value that may be copied and kept. The model is
// c10/cuda/CUDAStream.h's. Streams that another library made can be wrapped.
#pragma once

#include <c10/core/Stream.h>

#include <utility>

#include "hal/hal.h"

namespace puone {

// Names one stream: a plain value, which any thread may copy and use.
class Stream {
 public:
  // Throws c10::Error for a stream of another device type.
  explicit Stream(c10::Stream stream);

  // The stream as PyTorch knows it.
  c10::Stream unwrap() const noexcept {
    return stream_;
  }
  // Implicit, as at::CachingHostAllocatorImpl expects of its stream type.
  operator c10::Stream() const noexcept {
    return stream_;
  }
  // Unique among the streams of a device; 0 is the default stream.
  c10::StreamId id() const noexcept {
    return stream_.id();
  }
  // The device that runs the stream.
  c10::Device device() const noexcept {
    return stream_.device();
  }
  // Its index, from 0.
  c10::DeviceIndex deviceIndex() const noexcept {
    return stream_.device_index();
  }

  // The driver's stream; created on first use.
  puone_stream handle() const;
  // The same, or NULL if nothing has used the stream yet.
  puone_stream handleIfCreated() const noexcept;

  // Whether everything queued so far is done. Throws the error of work that failed.
  bool query() const;
  // Waits until everything queued so far is done. Throws the error of work that failed.
  void synchronize() const;
  // Lower is more urgent; 0 is the default.
  int priority() const;

  friend bool operator==(const Stream& a, const Stream& b) noexcept {
    return a.stream_ == b.stream_;
  }

 private:
  c10::Stream stream_;
};

// device -1 means the current device, here and below.
Stream getDefaultStream(c10::DeviceIndex device = -1);
Stream getCurrentStream(c10::DeviceIndex device = -1);

// Round robin over the pool; a negative priority is more urgent, out of range is clamped.
Stream getStreamFromPool(int priority = 0, c10::DeviceIndex device = -1);

// A stream over a native one (what the HAL's stream_native_handle() gives) that stays its owner's
// and has to outlive its use here: work queued on either runs in one order. Wrapping it again gives
// the same stream; a wrapper lives as long as the process. Its priority reads as 0. Throws
// NotImplementedError where the driver lacks PUONE_CAP_EXTERNAL_STREAMS.
Stream getStreamFromExternal(void* native, c10::DeviceIndex device = -1);

// Makes `stream` the calling thread's current stream of its device; the current device stays.
void setCurrentStream(const Stream& stream);

// Blocks until all streams of the device are idle, without the GIL's knowledge: callers that hold
// the GIL release it first. Throws if the device's current stream is being captured.
void synchronizeDevice(c10::DeviceIndex device);

// {least, greatest}; greatest <= 0 is the most urgent.
std::pair<int, int> streamPriorityRange();

} // namespace puone

template <>
struct std::hash<puone::Stream> {
  size_t operator()(const puone::Stream& stream) const noexcept {
    return std::hash<c10::Stream>{}(stream.unwrap());
  }
};
