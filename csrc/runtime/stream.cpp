// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/stream.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/capture.h"
#include "runtime/dedicated_stream.h"
#include "runtime/deferred_error.h"
#include "runtime/device.h"
#include "runtime/driver.h"
#include "runtime/primary_context.h"
#include "runtime/stream_lookup.h"

namespace puone {
namespace {

constexpr int kStreamsPerPool = 32;
constexpr int kMaxPriorities = 4;
constexpr c10::StreamId kDefaultStreamId = 0;

// A stream id is 0 for the default stream; then 1 + pool * 32 + position, where pool p holds the
// streams of priority -p; then external and dedicated streams, in the order of their creation.
constexpr c10::StreamId kFirstExternalId = 1 + kMaxPriorities * kStreamsPerPool;
constexpr int poolOf(c10::StreamId id) {
  return static_cast<int>((id - 1) / kStreamsPerPool);
}

struct ExternalStream {
  void* native;
  puone_stream handle;
};

struct DeviceStreams {
  std::array<std::atomic<puone_stream>, kFirstExternalId> handles{};
  std::array<std::atomic<uint32_t>, kMaxPriorities> next{};
  std::mutex creation;
  // Guarded by `creation`, as the next one is. A dedicated stream is in it too, its own native one.
  std::vector<ExternalStream> external;
  std::vector<c10::StreamId> idle_dedicated; // given back
};

DeviceStreams& deviceStreams(c10::DeviceIndex device) {
  // Leaked, with the streams in it: the driver releases them at shutdown.
  static const std::span<DeviceStreams> all = [] {
    const auto count = static_cast<size_t>(deviceCount());
    return std::span(new DeviceStreams[count], count);
  }();
  const auto index = static_cast<size_t>(device);
  TORCH_CHECK(index < all.size(), "there is no device puone:", static_cast<int>(device));
  return all[index];
}

int poolCount() {
  static const int count = [] {
    const auto [least, greatest] = streamPriorityRange();
    return std::clamp(least - greatest + 1, 1, kMaxPriorities);
  }();
  return count;
}

// Of the calling thread. `device` is valid.
c10::StreamId& currentStreamId(c10::DeviceIndex device) {
  static_assert(kDefaultStreamId == 0, "what a thread begins with");
  // Of a fixed size, because a vector would be checked at each access for having been constructed.
  thread_local std::array<c10::StreamId, size_t{std::numeric_limits<c10::DeviceIndex>::max()} + 1>
      ids{};
  return ids[static_cast<size_t>(device)];
}

Stream makeStream(c10::DeviceIndex device, c10::StreamId id) {
  return Stream(c10::Stream(c10::Stream::UNSAFE, c10::Device(kDeviceType, device), id));
}

// [quote: handle]
C10_NOINLINE puone_stream createStream(c10::DeviceIndex device, c10::StreamId id) {
  auto& streams = deviceStreams(device);
  std::lock_guard<std::mutex> lock(streams.creation);
  auto& slot = streams.handles[static_cast<size_t>(id)];
  puone_stream handle = slot.load(std::memory_order_acquire);
  if (handle == nullptr) {
    const int priority = id == kDefaultStreamId ? 0 : -poolOf(id);
    PUONE_CHECK(hal().stream_create(device, priority, &handle));
    slot.store(handle, std::memory_order_release);
    primaryContextFlag(device).store(true);
  }
  return handle;
}
// [end: handle]

// NULL: there is no such external stream.
C10_NOINLINE puone_stream externalHandle(c10::DeviceIndex device, c10::StreamId id) {
  auto& streams = deviceStreams(device);
  std::lock_guard<std::mutex> lock(streams.creation);
  const auto position = static_cast<size_t>(id - kFirstExternalId);
  return position < streams.external.size() ? streams.external[position].handle : nullptr;
}

// NULL: the stream has not been created, or there is no such external stream.
puone_stream existingHandle(c10::DeviceIndex device, c10::StreamId id) {
  if (C10_UNLIKELY(id >= kFirstExternalId)) return externalHandle(device, id);
  return deviceStreams(device).handles[static_cast<size_t>(id)].load(std::memory_order_acquire);
}

} // namespace

Stream::Stream(c10::Stream stream) : stream_(stream) {
  TORCH_CHECK(
      stream.device_type() == kDeviceType,
      "expected a puone stream, got a stream of ",
      stream.device());
  TORCH_CHECK(
      stream.id() >= 0 && (C10_LIKELY(stream.id() < kFirstExternalId) ||
                           externalHandle(stream.device_index(), stream.id()) != nullptr),
      "not a puone stream id: ",
      stream.id());
}

puone_stream Stream::handleIfCreated() const noexcept {
  return existingHandle(deviceIndex(), id());
}

puone_stream Stream::handle() const {
  const puone_stream handle = existingHandle(deviceIndex(), id());
  return C10_LIKELY(handle != nullptr) ? handle : createStream(deviceIndex(), id());
}

bool Stream::query() const {
  return isDone(hal().stream_query(handle()), "stream_query");
}

void Stream::synchronize() const {
  PUONE_CHECK(hal().stream_synchronize(handle()));
  raiseDeferredError(deviceIndex());
}

int Stream::priority() const {
  return id() == kDefaultStreamId || id() >= kFirstExternalId ? 0 : -poolOf(id());
}

Stream getDefaultStream(c10::DeviceIndex device) {
  return makeStream(resolveDevice(device), kDefaultStreamId);
}

Stream getCurrentStream(c10::DeviceIndex device) {
  device = resolveDevice(device);
  return makeStream(device, currentStreamId(device));
}

Stream getStreamFromPool(int priority, c10::DeviceIndex device) {
  device = resolveDevice(device);
  const int pool = std::clamp(-priority, 0, poolCount() - 1);
  auto& next = deviceStreams(device).next[static_cast<size_t>(pool)];
  for (int tries = 0; tries < kStreamsPerPool; ++tries) {
    const uint32_t turn = next++;
    const Stream stream = makeStream(device, 1 + pool * kStreamsPerPool + turn % kStreamsPerPool);
    // The caller's work would become part of the graph, and not run.
    if (C10_LIKELY(!isCapturing(stream))) return stream;
  }
  TORCH_CHECK(
      false,
      "puone: every stream of the pool takes part in the capture that is underway: reuse streams "
      "instead of making new ones");
}

namespace {

bool isNativeOf(puone_stream handle, void* native) {
  void* own = nullptr;
  return native != nullptr && hal().stream_native_handle(handle, &own) == PUONE_OK && own == native;
}

} // namespace

std::optional<Stream> findNativeStream(void* native, c10::DeviceIndex device) {
  for (c10::StreamId id = 0; id < kFirstExternalId; ++id) {
    const puone_stream handle = existingHandle(device, id);
    if (handle != nullptr && isNativeOf(handle, native)) return makeStream(device, id);
  }
  auto& streams = deviceStreams(device);
  std::unique_lock<std::mutex> lock(streams.creation);
  const auto& external = streams.external;
  const auto found = std::find_if(external.begin(), external.end(), [&](auto& stream) {
    return stream.native == native || isNativeOf(stream.handle, native);
  });
  const c10::StreamId id = kFirstExternalId + (found - external.begin());
  const bool known = found != external.end();
  lock.unlock(); // the constructor takes it
  return known ? std::optional(makeStream(device, id)) : std::nullopt;
}

Stream getStreamFromExternal(void* native, c10::DeviceIndex device) {
  device = resolveDevice(device);
  // One queue is one stream: what watches the order of work counts streams.
  if (const auto known = findNativeStream(native, device)) return *known;
  auto& streams = deviceStreams(device);
  std::unique_lock<std::mutex> lock(streams.creation);
  auto& external = streams.external;
  auto known = std::find_if(external.begin(), external.end(), [&](const ExternalStream& stream) {
    return stream.native == native;
  });
  if (known == external.end()) {
    external.reserve(external.size() + 1);
    puone_stream handle = nullptr;
    PUONE_CHECK(hal().stream_from_native(device, native, &handle));
    known = external.insert(external.end(), {native, handle});
    primaryContextFlag(device).store(true);
  }
  const c10::StreamId id = kFirstExternalId + (known - external.begin());
  lock.unlock(); // the constructor takes it
  return makeStream(device, id);
}

std::optional<Stream> findStream(puone_stream handle) {
  for (c10::DeviceIndex device = 0; device < deviceCount(); ++device) {
    auto& streams = deviceStreams(device);
    for (c10::StreamId id = 0; id < kFirstExternalId; ++id) {
      if (existingHandle(device, id) == handle) return makeStream(device, id);
    }
    std::unique_lock<std::mutex> lock(streams.creation);
    const auto& external = streams.external;
    const auto found = std::find_if(
        external.begin(), external.end(), [&](auto& stream) { return stream.handle == handle; });
    const c10::StreamId id = kFirstExternalId + (found - external.begin());
    const bool known = found != external.end();
    lock.unlock(); // the constructor takes it
    if (known) return makeStream(device, id);
  }
  return std::nullopt;
}

Stream takeDedicatedStream(c10::DeviceIndex device) {
  device = resolveDevice(device);
  auto& streams = deviceStreams(device);
  std::unique_lock<std::mutex> lock(streams.creation);
  c10::StreamId id = 0;
  if (!streams.idle_dedicated.empty()) {
    id = streams.idle_dedicated.back();
    streams.idle_dedicated.pop_back();
  } else {
    streams.external.reserve(streams.external.size() + 1);
    puone_stream handle = nullptr;
    PUONE_CHECK(hal().stream_create(device, 0, &handle));
    id = kFirstExternalId + static_cast<c10::StreamId>(streams.external.size());
    streams.external.push_back({handle, handle});
    primaryContextFlag(device).store(true);
  }
  lock.unlock(); // the constructor takes it
  return makeStream(device, id);
}

void giveBackDedicatedStream(const Stream& stream) {
  auto& streams = deviceStreams(stream.deviceIndex());
  const std::lock_guard<std::mutex> lock(streams.creation);
  streams.idle_dedicated.push_back(stream.id());
}

void setCurrentStream(const Stream& stream) {
  currentStreamId(resolveDevice(stream.deviceIndex())) = stream.id();
}

void synchronizeDevice(c10::DeviceIndex device) {
  const c10::DeviceIndex index = resolveDevice(device);
  refuseInCapture(getCurrentStream(index), "the device cannot be synchronised");
  PUONE_CHECK(hal().device_synchronize(index));
  raiseDeferredError(index);
}

std::pair<int, int> streamPriorityRange() {
  int32_t least = 0;
  int32_t greatest = 0;
  const puone_status status = hal().stream_priority_range(0, &least, &greatest); // as on any device
  if (status != PUONE_UNSUPPORTED) {
    PUONE_CHECK_STATUS(status, "stream_priority_range");
  }
  return {0, std::max(greatest, 1 - kMaxPriorities)};
}

} // namespace puone
