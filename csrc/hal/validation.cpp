// SPDX-License-Identifier: BSD-3-Clause
#include "hal/validation.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <string_view>
#include <vector>

#include "hal/collective.h"
#include "hal/element_bytes.h"
#include "hal/entries.h"
#include "hal/ipc.h"
#include "hal/live_set.h"
#include "hal/module.h"

namespace puone {
namespace {

const puone_hal_api* driver = nullptr; // what is wrapped; set once
uint64_t capabilities = 0;             // that it declares; set once
bool knows_own_memory_only = false;    // the parameter of validated(); set once

/// Whether the driver promises the entries of these capabilities.
bool has(uint64_t wanted) {
  return isPromised(capabilities, wanted);
}

// ---- refusals ----

// The text of the calling thread's last refusal, and whether it is newer than the driver's text.
thread_local char refusal[512] = "";
thread_local bool was_refused = false;

__attribute__((format(printf, 3, 4), cold)) puone_status
refuse(puone_status status, const char* entry, const char* format, ...) {
  const int used = std::snprintf(refusal, sizeof refusal, "%s: ", entry);
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(refusal + used, sizeof refusal - static_cast<size_t>(used), format, arguments);
  va_end(arguments);
  was_refused = true;
  return status;
}

/// The driver's status; if it is a failure, the driver's text is the last one.
puone_status answered(puone_status status) {
  if (status != PUONE_OK && status != PUONE_NOT_READY) was_refused = false;
  return status;
}

const char* driversMessage() {
  return driver->last_error_message != nullptr ? driver->last_error_message() : "";
}

/// The driver's status for a call that this layer made itself; the message names the caller's
/// entry.
puone_status passedOn(puone_status status, const char* entry) {
  if (status == PUONE_OK) return status;
  const char* const text = driversMessage();
  const char* const reason = std::strstr(text, ": ");
  return refuse(status, entry, "%s", reason != nullptr ? reason + 2 : text);
}

const char* lastErrorMessage() {
  return was_refused ? refusal : driversMessage();
}

// ---- live objects ----

/// The bits of a stream are its device; of an event, its device, its flags and whether it was
/// recorded; of a kernel, the size of its arguments in bytes and the device of its module; of a
/// communicator, its device, its rank and its size. A graph has none, and neither has memory of
/// another process or a module.
struct Live {
  LiveSet streams;
  LiveSet events;
  LiveSet kernels;
  LiveSet graphs;
  LiveSet mappings;
  LiveSet modules;
  LiveSet communicators;

  template <class F>
  void forEachSet(const F& f) {
    f(streams);
    f(events);
    f(kernels);
    f(graphs);
    f(mappings);
    f(modules);
    f(communicators);
  }
};

Live& live() {
  static auto* const all = new Live(); // leaked: threads may use it while the process exits
  return *all;
}

constexpr uint64_t kRecorded = uint64_t{1} << 63;

uint64_t eventBits(int32_t device, uint32_t flags) {
  return uint64_t{flags} << 32 | static_cast<uint32_t>(device);
}
int32_t deviceOf(uint64_t bits) {
  return static_cast<int32_t>(static_cast<uint32_t>(bits));
}
/// Of a kernel that runs on `device` only; -1: on any.
uint64_t kernelBits(uint64_t args_size, int32_t device) {
  return args_size << 16 | static_cast<uint16_t>(device);
}
uint64_t argsSizeOf(uint64_t kernel_bits) {
  return kernel_bits >> 16;
}
int32_t onlyDeviceOf(uint64_t kernel_bits) {
  return static_cast<int16_t>(static_cast<uint16_t>(kernel_bits));
}
bool isTimed(uint64_t bits) {
  return (bits >> 32 & PUONE_EVENT_TIMING) != 0;
}

/// The kernels of live modules, which end with them.
class ModulesKernels {
 public:
  void add(puone_module module, puone_kernel kernel, uint64_t bits) {
    const std::lock_guard guard(mutex_);
    all_[module].emplace_back(kernel, bits);
  }
  /// Ends the kernels of a module. What it gives goes back to revive() if they live on.
  auto end(puone_module module) {
    const std::lock_guard guard(mutex_);
    auto ended = all_.extract(module);
    if (!ended.empty()) {
      for (const auto& [kernel, bits] : ended.mapped()) live().kernels.erase(kernel);
    }
    return ended;
  }
  template <class Ended>
  void revive(Ended ended) {
    if (ended.empty()) return;
    for (const auto& [kernel, bits] : ended.mapped()) live().kernels.insert(kernel, bits);
    const std::lock_guard guard(mutex_);
    all_.insert(std::move(ended));
  }
  void clear() {
    const std::lock_guard guard(mutex_);
    all_.clear();
  }
  /// Hold the lock during fork(), before those of the sets.
  void lock() {
    mutex_.lock();
  }
  void unlock() {
    mutex_.unlock();
  }

 private:
  std::mutex mutex_;
  std::map<puone_module, std::vector<std::pair<puone_kernel, uint64_t>>> all_;
};

ModulesKernels& modulesKernels() {
  static auto* const only = new ModulesKernels(); // leaked, as what is live
  return *only;
}

std::atomic<bool> running{false};     // between init() and shutdown()
std::atomic<int32_t> known_count{-1}; // number of devices, which does not change while it runs

// ---- checks: OK, or the refusal ----

// PUONE_OK is 0: a check's result is true if it refused.
#define CHECKED(check)                                        \
  do {                                                        \
    if (const puone_status refused_ = (check)) [[unlikely]] { \
      return refused_;                                        \
    }                                                         \
  } while (false)

puone_status checkRunning(const char* entry) {
  if (running.load(std::memory_order_acquire)) return PUONE_OK;
  return refuse(PUONE_INTERNAL, entry, "init() has not been called, or shutdown() has");
}

puone_status checkOut(const char* entry, const void* out) {
  if (out != nullptr) return PUONE_OK;
  return refuse(PUONE_INVALID_ARGUMENT, entry, "an out-parameter is NULL");
}

/// A struct that the driver fills.
template <class T>
puone_status checkStruct(const char* entry, const T* out) {
  // A caller may have been compiled with any minor. A struct that grows is still compared with its
  // size in minor 0.
  static_assert(PUONE_HAL_ABI_MINOR == 0, "did a struct grow?");
  CHECKED(checkOut(entry, out));
  if (out->struct_size >= sizeof(T)) return PUONE_OK;
  return refuse(
      PUONE_INVALID_ARGUMENT,
      entry,
      "struct_size is %u, and the struct of this ABI has %zu bytes",
      out->struct_size,
      sizeof(T));
}

puone_status checkDevice(const char* entry, int32_t device) {
  int32_t count = known_count.load(std::memory_order_relaxed);
  if (count < 0) {
    CHECKED(passedOn(driver->device_count(&count), entry));
    known_count.store(count, std::memory_order_relaxed);
  }
  if (device >= 0 && device < count) return PUONE_OK;
  return refuse(PUONE_INVALID_DEVICE, entry, "device %d is not in [0, %d)", device, count);
}

/// Sets `bits` to the bits that are stored with the handle, if it is alive.
puone_status checkHandle(
    const char* entry, const char* what, const LiveSet& set, const void* handle, uint64_t& bits) {
  if (const std::optional<uint64_t> found = set.get(handle)) [[likely]] {
    bits = *found;
    return PUONE_OK;
  }
  CHECKED(checkRunning(entry));
  if (handle == nullptr) return refuse(PUONE_INVALID_ARGUMENT, entry, "%s is NULL", what);
  return refuse(
      PUONE_INVALID_ARGUMENT,
      entry,
      "%p is not a live %s: it has been destroyed, or never was one",
      handle,
      what);
}

puone_status checkStream(const char* entry, puone_stream stream, uint64_t& bits) {
  return checkHandle(entry, "stream", live().streams, stream, bits);
}
puone_status checkStream(const char* entry, puone_stream stream) {
  uint64_t bits = 0;
  return checkStream(entry, stream, bits);
}
puone_status checkEvent(const char* entry, puone_event event, uint64_t& bits) {
  return checkHandle(entry, "event", live().events, event, bits);
}
puone_status checkEvent(const char* entry, puone_event event) {
  uint64_t bits = 0;
  return checkEvent(entry, event, bits);
}
puone_status checkGraph(const char* entry, puone_graph graph) {
  uint64_t bits = 0;
  return checkHandle(entry, "graph", live().graphs, graph, bits);
}

/// Makes a new handle live. If there is no memory to store it, `destroy` destroys it again.
template <class Handle>
puone_status keep(
    const char* entry,
    LiveSet& set,
    Handle handle,
    uint64_t bits,
    puone_status (*destroy)(Handle)) {
  try {
    set.insert(handle, bits);
    return PUONE_OK;
  } catch (const std::bad_alloc&) {
    if (destroy != nullptr) destroy(handle);
    return refuse(PUONE_OUT_OF_MEMORY, entry, "the host is out of memory");
  }
}

/// A destroy entry. The handle leaves the set first, so that one of two threads that destroy it is
/// refused. If the driver refuses, it is alive again.
template <class Handle>
puone_status destroy(
    const char* entry,
    const char* what,
    LiveSet& set,
    Handle handle,
    puone_status (*inner)(Handle)) {
  if (handle == nullptr) return PUONE_OK;
  uint64_t bits = 0;
  CHECKED(checkHandle(entry, what, set, handle, bits));
  if (!set.erase(handle)) return checkHandle(entry, what, set, handle, bits);
  const puone_status status = answered(inner(handle));
  if (status != PUONE_OK) keep<Handle>(entry, set, handle, bits, nullptr);
  return status;
}

// ---- memory ----

puone_status attributesOf(const char* entry, const void* pointer, puone_pointer_attributes& found) {
  found = puone_pointer_attributes{};
  found.struct_size = sizeof found;
  return passedOn(driver->pointer_attributes(pointer, &found), entry);
}

uintptr_t address(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

/// The addresses between which all blocks of one kind of memory have been. Outside of them no block
/// needs to be looked for, which saves a copy to ordinary memory two questions to the driver.
class Extent {
 public:
  void include(const void* block, size_t bytes) noexcept {
    const uintptr_t start = address(block);
    uintptr_t lowest = start_.load(std::memory_order_relaxed);
    while (start < lowest && !start_.compare_exchange_weak(lowest, start)) {
    }
    uintptr_t highest = end_.load(std::memory_order_relaxed);
    while (start + bytes > highest && !end_.compare_exchange_weak(highest, start + bytes)) {
    }
  }
  bool touches(const void* pointer, size_t bytes) const noexcept {
    return address(pointer) < end_.load() && address(pointer) + bytes > start_.load();
  }

 private:
  std::atomic<uintptr_t> start_{UINTPTR_MAX};
  std::atomic<uintptr_t> end_{0};
};

Extent device_extent;
Extent pinned_extent;

/// Increases before memory ends.
std::atomic<uint64_t> memory_version{1};

void announceEndOfMemory() noexcept {
  memory_version.fetch_add(1, std::memory_order_acq_rel);
}

/// The block of device memory in which this thread's last range was. The next one is usually in it
/// too, and needs no question to the driver while no memory has ended.
struct LastBlock {
  uint64_t version = 0; // of the memory, from before the driver was asked
  uintptr_t start = 0;
  uintptr_t end = 0;
  int32_t device = -1;

  bool holds(const void* pointer, size_t bytes) const noexcept {
    return version == memory_version.load(std::memory_order_acquire) && address(pointer) >= start &&
           address(pointer) < end && bytes <= end - address(pointer);
  }
};
thread_local LastBlock last_block;

/// A range of device memory that work of `stream_device` may address.
puone_status checkDeviceRange(
    const char* entry, const char* what, const void* pointer, size_t bytes, int32_t stream_device) {
  LastBlock& last = last_block;
  if (last.device == stream_device && last.holds(pointer, bytes)) [[likely]]
    return PUONE_OK;
  const uint64_t version = memory_version.load(std::memory_order_acquire);
  puone_pointer_attributes block;
  CHECKED(attributesOf(entry, pointer, block));
  if (block.kind != PUONE_MEMORY_DEVICE) {
    return refuse(
        PUONE_INVALID_ARGUMENT,
        entry,
        "%s %p is not in a live block of device memory",
        what,
        pointer);
  }
  const size_t room = address(block.base) + block.size - address(pointer);
  if (block.size != 0 && bytes > room) { // it is 0 for memory that does not belong to the driver
    return refuse(
        PUONE_INVALID_ARGUMENT,
        entry,
        "%s %p + %zu bytes runs %zu bytes over the end of its block (%p + %zu bytes, device %d)",
        what,
        pointer,
        bytes,
        bytes - room,
        block.base,
        block.size,
        block.device);
  }
  if (block.device == stream_device) {
    if (knows_own_memory_only && block.size != 0) {
      last = {version, address(block.base), address(block.base) + block.size, block.device};
    }
    return PUONE_OK;
  }
  int32_t can = 0;
  if (has(PUONE_CAP_PEER_ACCESS)) {
    CHECKED(passedOn(driver->device_can_access_peer(stream_device, block.device, &can), entry));
  }
  if (can != 0) return PUONE_OK;
  return refuse(
      PUONE_INVALID_ARGUMENT,
      entry,
      "%s %p is on device %d, which the stream's device %d cannot access",
      what,
      pointer,
      block.device,
      stream_device);
}

/// A range of host memory: inside one live pinned block, or touching none.
puone_status checkHostRange(
    const char* entry, const char* what, const void* pointer, size_t bytes) {
  if (pointer == nullptr) return refuse(PUONE_INVALID_ARGUMENT, entry, "%s is NULL", what);
  if (bytes - 1 > UINTPTR_MAX - address(pointer)) {
    return refuse(
        PUONE_INVALID_ARGUMENT, entry, "%s %p + %zu bytes wraps around", what, pointer, bytes);
  }
  if (knows_own_memory_only && !device_extent.touches(pointer, bytes) &&
      !pinned_extent.touches(pointer, bytes)) {
    return PUONE_OK;
  }
  puone_pointer_attributes first;
  puone_pointer_attributes last;
  CHECKED(attributesOf(entry, pointer, first));
  CHECKED(attributesOf(entry, static_cast<const char*>(pointer) + (bytes - 1), last));
  if (first.kind == PUONE_MEMORY_DEVICE || last.kind == PUONE_MEMORY_DEVICE) {
    return refuse(
        PUONE_INVALID_ARGUMENT,
        entry,
        "%s %p is device memory, host memory was claimed",
        what,
        pointer);
  }
  if (first.base == last.base) return PUONE_OK;
  return refuse(
      PUONE_INVALID_ARGUMENT,
      entry,
      "%s %p + %zu bytes crosses the edge of pinned memory",
      what,
      pointer,
      bytes);
}

puone_status checkCopy(
    const char* entry,
    const void* to,
    const void* from,
    size_t bytes,
    puone_memcpy_kind kind,
    int32_t stream_device) {
  if (kind < PUONE_MEMCPY_HOST_TO_HOST || kind > PUONE_MEMCPY_DEVICE_TO_DEVICE) {
    return refuse(
        PUONE_INVALID_ARGUMENT, entry, "%d is not a puone_memcpy_kind", static_cast<int>(kind));
  }
  if (bytes == 0) return PUONE_OK;
  CHECKED(
      (kind & 1) != 0 ? checkDeviceRange(entry, "dst", to, bytes, stream_device)
                      : checkHostRange(entry, "dst", to, bytes));
  CHECKED(
      (kind & 2) != 0 ? checkDeviceRange(entry, "src", from, bytes, stream_device)
                      : checkHostRange(entry, "src", from, bytes));
  if (address(to) - address(from) >= bytes && address(from) - address(to) >= bytes) return PUONE_OK;
  return refuse(
      PUONE_INVALID_ARGUMENT, entry, "the ranges %p and %p of %zu bytes overlap", to, from, bytes);
}

/// The start of a live block of this kind.
puone_status checkBlock(const char* entry, const void* pointer, puone_memory_kind kind) {
  const char* const what = kind == PUONE_MEMORY_DEVICE ? "device memory" : "pinned memory";
  puone_pointer_attributes block;
  CHECKED(attributesOf(entry, pointer, block));
  if (block.kind != kind || block.size == 0) {
    return refuse(PUONE_INVALID_ARGUMENT, entry, "%p is not a live block of %s", pointer, what);
  }
  if (block.base == pointer) return PUONE_OK;
  return refuse(
      PUONE_INVALID_ARGUMENT,
      entry,
      "%p is inside a block of %s, not its start %p",
      pointer,
      what,
      block.base);
}

/// Blocks that a thread is freeing: if two threads free one block, the second is refused.
class Releasing {
 public:
  explicit Releasing(const void* block) : block_(block) {
    const std::lock_guard guard(mutex());
    auto& all = blocks();
    is_first_ = std::find(all.begin(), all.end(), block) == all.end();
    if (is_first_) all.push_back(block);
  }
  ~Releasing() {
    if (!is_first_) return;
    const std::lock_guard guard(mutex());
    std::erase(blocks(), block_);
  }
  Releasing(const Releasing&) = delete;
  Releasing& operator=(const Releasing&) = delete;

  bool isFirst() const {
    return is_first_;
  }
  static std::mutex& mutex() {
    static auto* const only = new std::mutex();
    return *only;
  }

 private:
  static std::vector<const void*>& blocks() {
    static auto* const all = new std::vector<const void*>();
    return *all;
  }

  const void* const block_;
  bool is_first_ = false;
};

puone_status release(
    const char* entry, void* pointer, puone_memory_kind kind, puone_status (*inner)(void*)) {
  if (pointer == nullptr) return PUONE_OK;
  CHECKED(checkRunning(entry));
  const Releasing releasing(pointer);
  if (!releasing.isFirst()) {
    return refuse(PUONE_INVALID_ARGUMENT, entry, "%p is being freed on another thread", pointer);
  }
  if (has(PUONE_CAP_MEMORY)) CHECKED(checkBlock(entry, pointer, kind));
  announceEndOfMemory();
  return answered(inner(pointer));
}

// ---- driver ----

void beforeFork() {
  modulesKernels().lock();
  live().forEachSet([](const LiveSet& set) { set.lock(); });
  Releasing::mutex().lock();
}
void afterFork() {
  Releasing::mutex().unlock();
  live().forEachSet([](const LiveSet& set) { set.unlock(); });
  modulesKernels().unlock();
}

puone_status init() {
  const puone_status status = answered(driver->init());
  if (status != PUONE_OK) return status;
  static const int watches_forks = pthread_atfork(beforeFork, afterFork, afterFork);
  if (watches_forks != 0) return refuse(PUONE_INTERNAL, "init", "pthread_atfork failed");
  running.store(true, std::memory_order_release);
  return PUONE_OK;
}

puone_status shutdown() {
  running.store(false, std::memory_order_release);
  announceEndOfMemory();
  const puone_status status = answered(driver->shutdown());
  if (status != PUONE_OK) { // it refuses, for example from within a host function, and stays in use
    running.store(true, std::memory_order_release);
    return status;
  }
  modulesKernels().clear();
  live().forEachSet([](LiveSet& set) { set.clear(); });
  known_count.store(-1, std::memory_order_relaxed);
  return status;
}

puone_status describe(puone_driver_info* out) {
  CHECKED(checkStruct("describe", out));
  const puone_status status = answered(driver->describe(out));
  if (status == PUONE_OK) out->capabilities |= PUONE_CAP_VALIDATION;
  return status;
}

// ---- device ----

puone_status deviceCount(int32_t* out) {
  CHECKED(checkOut("device_count", out));
  return answered(driver->device_count(out));
}

puone_status deviceProperties(int32_t device, puone_device_properties* out) {
  constexpr const char* entry = "device_properties";
  CHECKED(checkStruct(entry, out));
  CHECKED(checkDevice(entry, device));
  return answered(driver->device_properties(device, out));
}

puone_status deviceMemoryInfo(int32_t device, uint64_t* free_bytes, uint64_t* total_bytes) {
  constexpr const char* entry = "device_memory_info";
  CHECKED(checkOut(entry, free_bytes));
  CHECKED(checkOut(entry, total_bytes));
  CHECKED(checkDevice(entry, device));
  return answered(driver->device_memory_info(device, free_bytes, total_bytes));
}

puone_status deviceSynchronize(int32_t device) {
  CHECKED(checkDevice("device_synchronize", device));
  return answered(driver->device_synchronize(device));
}

puone_status streamPriorityRange(int32_t device, int32_t* least, int32_t* greatest) {
  constexpr const char* entry = "stream_priority_range";
  CHECKED(checkOut(entry, least));
  CHECKED(checkOut(entry, greatest));
  CHECKED(checkDevice(entry, device));
  return answered(driver->stream_priority_range(device, least, greatest));
}

puone_status deviceCanAccessPeer(int32_t device, int32_t peer, int32_t* out) {
  constexpr const char* entry = "device_can_access_peer";
  CHECKED(checkOut(entry, out));
  CHECKED(checkDevice(entry, device));
  CHECKED(checkDevice(entry, peer));
  return answered(driver->device_can_access_peer(device, peer, out));
}

// ---- memory ----

puone_status allocate(int32_t device, size_t bytes, void** out) {
  constexpr const char* entry = "malloc";
  CHECKED(checkOut(entry, out));
  CHECKED(checkDevice(entry, device));
  if (bytes == 0) return refuse(PUONE_INVALID_ARGUMENT, entry, "bytes is 0");
  CHECKED(answered(driver->malloc(device, bytes, out)));
  device_extent.include(*out, bytes);
  return PUONE_OK;
}

puone_status release(void* pointer) {
  if (pointer != nullptr && live().mappings.get(pointer)) {
    return refuse(
        PUONE_INVALID_ARGUMENT, "free", "%p is of ipc.open_memory: close it instead", pointer);
  }
  return release("free", pointer, PUONE_MEMORY_DEVICE, driver->free);
}

puone_status allocateHost(size_t bytes, void** out) {
  constexpr const char* entry = "host_malloc";
  CHECKED(checkOut(entry, out));
  if (bytes == 0) return refuse(PUONE_INVALID_ARGUMENT, entry, "bytes is 0");
  CHECKED(answered(driver->host_malloc(bytes, out)));
  pinned_extent.include(*out, bytes);
  return PUONE_OK;
}

puone_status releaseHost(void* pointer) {
  return release("host_free", pointer, PUONE_MEMORY_HOST, driver->host_free);
}

puone_status pointerAttributes(const void* pointer, puone_pointer_attributes* out) {
  CHECKED(checkStruct("pointer_attributes", out));
  return answered(driver->pointer_attributes(pointer, out));
}

puone_status memcpyAsync(
    void* to, const void* from, size_t bytes, puone_memcpy_kind kind, puone_stream stream) {
  constexpr const char* entry = "memcpy_async";
  uint64_t bits = 0;
  CHECKED(checkStream(entry, stream, bits));
  CHECKED(checkCopy(entry, to, from, bytes, kind, deviceOf(bits)));
  return answered(driver->memcpy_async(to, from, bytes, kind, stream));
}

puone_status memsetAsync(void* to, int32_t value, size_t bytes, puone_stream stream) {
  constexpr const char* entry = "memset_async";
  uint64_t bits = 0;
  CHECKED(checkStream(entry, stream, bits));
  if (bytes > 0) CHECKED(checkDeviceRange(entry, "dst", to, bytes, deviceOf(bits)));
  return answered(driver->memset_async(to, value, bytes, stream));
}

// ---- stream ----

puone_status streamCreate(int32_t device, int32_t priority, puone_stream* out) {
  constexpr const char* entry = "stream_create";
  CHECKED(checkOut(entry, out));
  CHECKED(checkDevice(entry, device));
  puone_stream made = nullptr;
  CHECKED(answered(driver->stream_create(device, priority, &made)));
  CHECKED(keep(entry, live().streams, made, eventBits(device, 0), driver->stream_destroy));
  *out = made;
  return PUONE_OK;
}

puone_status streamFromNative(int32_t device, void* native, puone_stream* out) {
  constexpr const char* entry = "stream_from_native";
  CHECKED(checkOut(entry, out));
  CHECKED(checkDevice(entry, device));
  if (native == nullptr) return refuse(PUONE_INVALID_ARGUMENT, entry, "native is NULL");
  puone_stream made = nullptr;
  CHECKED(answered(driver->stream_from_native(device, native, &made)));
  CHECKED(keep(entry, live().streams, made, eventBits(device, 0), driver->stream_destroy));
  *out = made;
  return PUONE_OK;
}

puone_status streamDestroy(puone_stream stream) {
  return destroy("stream_destroy", "stream", live().streams, stream, driver->stream_destroy);
}

puone_status streamQuery(puone_stream stream) {
  CHECKED(checkStream("stream_query", stream));
  return answered(driver->stream_query(stream));
}

puone_status streamSynchronize(puone_stream stream) {
  CHECKED(checkStream("stream_synchronize", stream));
  return answered(driver->stream_synchronize(stream));
}

puone_status streamWaitEvent(puone_stream stream, puone_event event) {
  constexpr const char* entry = "stream_wait_event";
  CHECKED(checkStream(entry, stream));
  CHECKED(checkEvent(entry, event));
  return answered(driver->stream_wait_event(stream, event));
}

puone_status streamHostFunc(puone_stream stream, puone_host_func function, void* user_data) {
  constexpr const char* entry = "stream_host_func";
  CHECKED(checkStream(entry, stream));
  if (function == nullptr) return refuse(PUONE_INVALID_ARGUMENT, entry, "fn is NULL");
  return answered(driver->stream_host_func(stream, function, user_data));
}

puone_status streamNativeHandle(puone_stream stream, void** out) {
  constexpr const char* entry = "stream_native_handle";
  CHECKED(checkOut(entry, out));
  CHECKED(checkStream(entry, stream));
  return answered(driver->stream_native_handle(stream, out));
}

// ---- event ----

puone_status eventCreate(int32_t device, uint32_t flags, puone_event* out) {
  constexpr const char* entry = "event_create";
  constexpr uint32_t known = PUONE_EVENT_TIMING | PUONE_EVENT_BLOCKING_SYNC;
  CHECKED(checkOut(entry, out));
  CHECKED(checkDevice(entry, device));
  if ((flags & ~known) != 0) {
    return refuse(PUONE_INVALID_ARGUMENT, entry, "unknown event flags 0x%x", flags);
  }
  puone_event made = nullptr;
  CHECKED(answered(driver->event_create(device, flags, &made)));
  CHECKED(keep(entry, live().events, made, eventBits(device, flags), driver->event_destroy));
  *out = made;
  return PUONE_OK;
}

puone_status eventDestroy(puone_event event) {
  return destroy("event_destroy", "event", live().events, event, driver->event_destroy);
}

puone_status eventRecord(puone_event event, puone_stream stream) {
  constexpr const char* entry = "event_record";
  uint64_t event_bits = 0;
  uint64_t stream_bits = 0;
  CHECKED(checkEvent(entry, event, event_bits));
  CHECKED(checkStream(entry, stream, stream_bits));
  if (deviceOf(event_bits) != deviceOf(stream_bits)) {
    return refuse(
        PUONE_INVALID_ARGUMENT,
        entry,
        "the event is of device %d, the stream of device %d",
        deviceOf(event_bits),
        deviceOf(stream_bits));
  }
  const puone_status status = answered(driver->event_record(event, stream));
  if (status == PUONE_OK && (event_bits & kRecorded) == 0) live().events.add(event, kRecorded);
  return status;
}

puone_status eventQuery(puone_event event) {
  CHECKED(checkEvent("event_query", event));
  return answered(driver->event_query(event));
}

puone_status eventSynchronize(puone_event event) {
  CHECKED(checkEvent("event_synchronize", event));
  return answered(driver->event_synchronize(event));
}

puone_status eventElapsedMs(puone_event start, puone_event end, float* out) {
  constexpr const char* entry = "event_elapsed_ms";
  uint64_t from = 0;
  uint64_t to = 0;
  CHECKED(checkOut(entry, out));
  CHECKED(checkEvent(entry, start, from));
  CHECKED(checkEvent(entry, end, to));
  if (!isTimed(from & to)) {
    return refuse(PUONE_INVALID_ARGUMENT, entry, "both events need PUONE_EVENT_TIMING");
  }
  if ((from & to & kRecorded) == 0) {
    return refuse(PUONE_INVALID_ARGUMENT, entry, "both events must have been recorded");
  }
  if (deviceOf(from) != deviceOf(to)) {
    return refuse(
        PUONE_INVALID_ARGUMENT,
        entry,
        "the events are of devices %d and %d",
        deviceOf(from),
        deviceOf(to));
  }
  return answered(driver->event_elapsed_ms(start, end, out));
}

// ---- kernel ----

puone_status kernelFind(const char* name, puone_kernel_info* info, puone_kernel* out) {
  constexpr const char* entry = "kernel_find";
  CHECKED(checkOut(entry, out));
  if (info != nullptr) CHECKED(checkStruct(entry, info));
  if (name == nullptr) return refuse(PUONE_INVALID_ARGUMENT, entry, "name is NULL");
  puone_kernel_info found{};
  found.struct_size = sizeof found;
  puone_kernel kernel = nullptr;
  CHECKED(answered(driver->kernel_find(name, info != nullptr ? info : &found, &kernel)));
  const uint64_t args_size = info != nullptr ? info->args_size : found.args_size;
  const uint64_t bits = kernelBits(args_size, /*device=*/-1);
  CHECKED(keep<puone_kernel>(entry, live().kernels, kernel, bits, nullptr));
  *out = kernel;
  return PUONE_OK;
}

/// The least memory_alignment that a driver may have.
constexpr size_t kLeastAlignment = 256;

/// Memory that a kernel on `device` may use.
puone_status checkWorkspace(const char* entry, const void* made, size_t bytes, int32_t device) {
  puone_pointer_attributes block;
  CHECKED(attributesOf(entry, made, block));
  if (block.kind != PUONE_MEMORY_DEVICE || block.device != device) {
    return refuse(
        PUONE_INVALID_ARGUMENT,
        entry,
        "the workspace %p that the launch context gave is not memory of device %d",
        made,
        device);
  }
  const size_t room = address(block.base) + block.size - address(made);
  if (block.size != 0 && room < bytes) {
    return refuse(
        PUONE_INVALID_ARGUMENT,
        entry,
        "the workspace %p that the launch context gave has %zu bytes, not %zu",
        made,
        room,
        bytes);
  }
  if (address(made) % kLeastAlignment != 0) {
    return refuse(
        PUONE_INVALID_ARGUMENT,
        entry,
        "the workspace %p that the launch context gave is not aligned to %zu bytes",
        made,
        kLeastAlignment);
  }
  return PUONE_OK;
}

/// Stands between the driver and the caller's callback.
struct CheckedContext {
  const puone_launch_context* callers;
  int32_t device;

  static puone_status allocate(void* user, size_t bytes, void** out) {
    constexpr const char* entry = "kernel_launch";
    const auto& self = *static_cast<const CheckedContext*>(user);
    void* made = nullptr;
    CHECKED(self.callers->allocate(self.callers->user, bytes, &made));
    // Without this capability nobody can say whose memory it is.
    if (has(PUONE_CAP_MEMORY)) CHECKED(checkWorkspace(entry, made, bytes, self.device));
    *out = made;
    return PUONE_OK;
  }
};

puone_status kernelLaunch(
    puone_kernel kernel,
    const void* args,
    size_t bytes,
    puone_stream stream,
    const puone_launch_context* context) {
  constexpr const char* entry = "kernel_launch";
  uint64_t kernel_bits = 0;
  uint64_t stream_bits = 0;
  CHECKED(checkHandle(entry, "kernel", live().kernels, kernel, kernel_bits));
  CHECKED(checkStream(entry, stream, stream_bits));
  const uint64_t args_size = argsSizeOf(kernel_bits);
  const int32_t device = onlyDeviceOf(kernel_bits);
  if (device >= 0 && device != deviceOf(stream_bits)) {
    return refuse(
        PUONE_INVALID_ARGUMENT,
        entry,
        "the kernel's module is on device %d, the stream on device %d",
        device,
        deviceOf(stream_bits));
  }
  if (args == nullptr) return refuse(PUONE_INVALID_ARGUMENT, entry, "args is NULL");
  if (bytes != args_size) {
    return refuse(
        PUONE_INVALID_ARGUMENT,
        entry,
        "the kernel takes %llu bytes of arguments, not %zu",
        static_cast<unsigned long long>(args_size),
        bytes);
  }
  if (context == nullptr) {
    return answered(driver->kernel_launch(kernel, args, bytes, stream, nullptr));
  }
  CHECKED(checkStruct(entry, context));
  if (context->allocate == nullptr) {
    return refuse(PUONE_INVALID_ARGUMENT, entry, "the launch context has no allocate");
  }
  CheckedContext checked{context, deviceOf(stream_bits)};
  const puone_launch_context passed{
      sizeof(puone_launch_context), 0, &CheckedContext::allocate, &checked};
  was_refused = false; // of the callback; the driver returns the callback's status
  const puone_status status = driver->kernel_launch(kernel, args, bytes, stream, &passed);
  return was_refused ? status : answered(status);
}

// ---- extension "fault" ----

const puone_fault_api* fault = nullptr;

puone_status deviceLost(int32_t device) {
  CHECKED(checkDevice("fault.device_lost", device));
  return answered(fault->device_lost(device));
}

puone_fault_api wrapped(const puone_fault_api& api) {
  puone_fault_api result = api;
  result.device_lost = deviceLost;
  return result;
}

// ---- extension "dlpack" ----

const puone_dlpack_api* dlpack = nullptr;

puone_status deviceId(int32_t device, int32_t* out) {
  constexpr const char* entry = "dlpack.device_id";
  CHECKED(checkOut(entry, out));
  CHECKED(checkDevice(entry, device));
  return answered(dlpack->device_id(device, out));
}

puone_status nativeStreamWaitEvent(void* native_stream, puone_event event) {
  constexpr const char* entry = "dlpack.native_stream_wait_event";
  if (native_stream == nullptr) {
    return refuse(PUONE_INVALID_ARGUMENT, entry, "native_stream is NULL");
  }
  CHECKED(checkEvent(entry, event));
  return answered(dlpack->native_stream_wait_event(native_stream, event));
}

puone_dlpack_api wrapped(const puone_dlpack_api& api) {
  puone_dlpack_api result = api;
  result.device_id = deviceId;
  result.native_stream_wait_event = nativeStreamWaitEvent;
  return result;
}

// ---- extension "graph" ----

const puone_graph_api* graphs = nullptr;

puone_status captureBegin(puone_stream stream) {
  CHECKED(checkStream("graph.capture_begin", stream));
  return answered(graphs->capture_begin(stream));
}

puone_status captureEnd(puone_stream stream, puone_graph* out) {
  constexpr const char* entry = "graph.capture_end";
  CHECKED(checkOut(entry, out));
  CHECKED(checkStream(entry, stream));
  puone_graph made = nullptr;
  CHECKED(answered(graphs->capture_end(stream, &made)));
  CHECKED(keep(entry, live().graphs, made, 0, graphs->destroy));
  *out = made;
  return PUONE_OK;
}

puone_status isCapturing(puone_stream stream, int32_t* out) {
  constexpr const char* entry = "graph.is_capturing";
  CHECKED(checkOut(entry, out));
  CHECKED(checkStream(entry, stream));
  return answered(graphs->is_capturing(stream, out));
}

puone_status instantiate(puone_graph graph) {
  CHECKED(checkGraph("graph.instantiate", graph));
  return answered(graphs->instantiate(graph));
}

puone_status launchGraph(puone_graph graph, puone_stream stream) {
  constexpr const char* entry = "graph.launch";
  CHECKED(checkGraph(entry, graph));
  CHECKED(checkStream(entry, stream));
  return answered(graphs->launch(graph, stream));
}

puone_status destroyGraph(puone_graph graph) {
  return destroy("graph.destroy", "graph", live().graphs, graph, graphs->destroy);
}

puone_graph_api wrapped(const puone_graph_api& api) {
  puone_graph_api result = api;
  result.capture_begin = captureBegin;
  result.capture_end = captureEnd;
  result.is_capturing = isCapturing;
  result.instantiate = instantiate;
  result.launch = launchGraph;
  result.destroy = destroyGraph;
  return result;
}

// ---- extension "trace" ----

const puone_trace_api* tracing = nullptr;

puone_status traceStop(const puone_trace_record** out, uint64_t* count) {
  constexpr const char* entry = "trace.stop";
  CHECKED(checkOut(entry, out));
  CHECKED(checkOut(entry, count));
  return answered(tracing->stop(out, count));
}

puone_status traceCorrelation(uint64_t* out) {
  CHECKED(checkOut("trace.correlation", out));
  return answered(tracing->correlation(out));
}

puone_trace_api wrapped(const puone_trace_api& api) {
  puone_trace_api result = api;
  result.stop = traceStop;
  result.correlation = traceCorrelation;
  return result;
}

// ---- extension "ipc" ----

const puone_ipc_api* ipc = nullptr;

puone_status exportMemory(void* block, puone_ipc_memory_handle* out) {
  constexpr const char* entry = "ipc.export_memory";
  CHECKED(checkOut(entry, out));
  CHECKED(checkRunning(entry));
  CHECKED(checkBlock(entry, block, PUONE_MEMORY_DEVICE));
  if (live().mappings.get(block)) {
    return refuse(PUONE_INVALID_ARGUMENT, entry, "%p is memory of another process", block);
  }
  return answered(ipc->export_memory(block, out));
}

puone_status openMemory(int32_t device, const puone_ipc_memory_handle* handle, void** out) {
  constexpr const char* entry = "ipc.open_memory";
  CHECKED(checkOut(entry, out));
  CHECKED(checkDevice(entry, device));
  if (handle == nullptr) return refuse(PUONE_INVALID_ARGUMENT, entry, "handle is NULL");
  void* made = nullptr;
  CHECKED(answered(ipc->open_memory(device, handle, &made)));
  puone_pointer_attributes block;
  CHECKED(attributesOf(entry, made, block));
  device_extent.include(made, block.size);
  CHECKED(keep(entry, live().mappings, made, 0, ipc->close_memory));
  *out = made;
  return PUONE_OK;
}

puone_status closeMemory(void* ptr) {
  announceEndOfMemory();
  return destroy("ipc.close_memory", "mapping", live().mappings, ptr, ipc->close_memory);
}

puone_ipc_api wrapped(const puone_ipc_api& api) {
  puone_ipc_api result = api;
  result.export_memory = exportMemory;
  result.open_memory = openMemory;
  result.close_memory = closeMemory;
  return result;
}

// ---- extension "module" ----

const puone_module_api* modules = nullptr;

puone_status checkModule(const char* entry, puone_module module, uint64_t& bits) {
  return checkHandle(entry, "module", live().modules, module, bits);
}

puone_status moduleTarget(int32_t device, puone_module_target* out) {
  constexpr const char* entry = "module.target";
  CHECKED(checkStruct(entry, out));
  CHECKED(checkRunning(entry));
  if (device != -1) CHECKED(checkDevice(entry, device));
  return answered(modules->target(device, out));
}

puone_status compileModule(
    const char* source, const puone_module_options* options, void** image, size_t* bytes) {
  constexpr const char* entry = "module.compile";
  constexpr uint32_t known = PUONE_MODULE_UNCONTRACTED;
  CHECKED(checkOut(entry, image));
  CHECKED(checkOut(entry, bytes));
  CHECKED(checkRunning(entry));
  if (source == nullptr) return refuse(PUONE_INVALID_ARGUMENT, entry, "source is NULL");
  if (options != nullptr) {
    CHECKED(checkStruct(entry, options));
    if ((options->flags & ~known) != 0) {
      return refuse(PUONE_INVALID_ARGUMENT, entry, "unknown flags 0x%x", options->flags);
    }
  }
  return answered(modules->compile(source, options, image, bytes));
}

puone_status loadModule(int32_t device, const void* image, size_t bytes, puone_module* out) {
  constexpr const char* entry = "module.load";
  CHECKED(checkOut(entry, out));
  CHECKED(checkDevice(entry, device));
  if (image == nullptr) return refuse(PUONE_INVALID_ARGUMENT, entry, "image is NULL");
  puone_module made = nullptr;
  CHECKED(answered(modules->load(device, image, bytes, &made)));
  CHECKED(keep(entry, live().modules, made, eventBits(device, 0), modules->unload));
  *out = made;
  return PUONE_OK;
}

/// A field of 8 bytes of the arguments, behind the member that all of them begin with.
puone_status checkField(
    const char* entry, const puone_module_kernel& kernel, const char* what, uint64_t place) {
  constexpr uint64_t field = sizeof(uint64_t);
  if (place % field == 0 && place >= field && place <= kernel.args_size - field) return PUONE_OK;
  return refuse(
      PUONE_INVALID_ARGUMENT,
      entry,
      "kernel %.100s: %s cannot be at byte %llu of the arguments",
      kernel.name,
      what,
      static_cast<unsigned long long>(place));
}

puone_status checkNumber(
    const char* entry, const puone_module_kernel& kernel, const puone_module_number& number) {
  return number.argument == 0 ? PUONE_OK : checkField(entry, kernel, "a number", number.argument);
}

puone_status checkAccess(
    const char* entry, const puone_module_kernel& kernel, const puone_module_access& access) {
  constexpr uint32_t known = PUONE_MODULE_READ | PUONE_MODULE_WRITE | PUONE_MODULE_PARTIAL;
  if (access.name == nullptr || (access.step_count > 0 && access.steps == nullptr)) {
    return refuse(
        PUONE_INVALID_ARGUMENT,
        entry,
        "kernel %.100s: an access has no name or steps",
        kernel.name);
  }
  if ((access.flags & ~known) != 0 || access.element == 0) {
    return refuse(
        PUONE_INVALID_ARGUMENT,
        entry,
        "kernel %.100s: the access to %.100s has flags 0x%x and elements of %u bytes",
        kernel.name,
        access.name,
        access.flags,
        access.element);
  }
  CHECKED(checkField(entry, kernel, access.name, access.pointer));
  for (uint64_t i = 0; i < access.step_count; ++i) {
    CHECKED(checkNumber(entry, kernel, access.steps[i].size));
    CHECKED(checkNumber(entry, kernel, access.steps[i].stride));
  }
  return PUONE_OK;
}

puone_status checkDeclaration(const char* entry, const puone_module_kernel* kernel) {
  constexpr uint64_t most = uint64_t{1} << 32;
  CHECKED(checkStruct(entry, kernel));
  if (kernel->name == nullptr) return refuse(PUONE_INVALID_ARGUMENT, entry, "name is NULL");
  if (kernel->args_size < sizeof(puone_module_arguments) || kernel->args_size >= most) {
    return refuse(
        PUONE_INVALID_ARGUMENT,
        entry,
        "kernel %.100s: arguments cannot have %llu bytes",
        kernel->name,
        static_cast<unsigned long long>(kernel->args_size));
  }
  if (kernel->error_count > PUONE_MODULE_MAX_ERRORS ||
      (kernel->error_count > 0 && kernel->errors == nullptr) ||
      (kernel->access_count > 0 && kernel->accesses == nullptr)) {
    return refuse(
        PUONE_INVALID_ARGUMENT,
        entry,
        "kernel %.100s: the list of errors or accesses is NULL, or there are too many errors",
        kernel->name);
  }
  for (uint32_t i = 0; i < kernel->error_count; ++i) {
    if (kernel->errors[i] == nullptr) {
      return refuse(PUONE_INVALID_ARGUMENT, entry, "kernel %.100s: a text is NULL", kernel->name);
    }
  }
  for (uint64_t i = 0; i < kernel->access_count; ++i) {
    CHECKED(checkAccess(entry, *kernel, kernel->accesses[i]));
  }
  return PUONE_OK;
}

puone_status findInModule(
    puone_module module, const puone_module_kernel* kernel, puone_kernel* out) {
  constexpr const char* entry = "module.find";
  uint64_t module_bits = 0;
  CHECKED(checkOut(entry, out));
  CHECKED(checkModule(entry, module, module_bits));
  if (kernel == nullptr) return refuse(PUONE_INVALID_ARGUMENT, entry, "kernel is NULL");
  CHECKED(checkDeclaration(entry, kernel));
  puone_kernel found = nullptr;
  CHECKED(answered(modules->find(module, kernel, &found)));
  const uint64_t bits = kernelBits(kernel->args_size, deviceOf(module_bits));
  CHECKED(keep<puone_kernel>(entry, live().kernels, found, bits, nullptr));
  modulesKernels().add(module, found, bits);
  *out = found;
  return PUONE_OK;
}

puone_status kernelsDeclaration(puone_kernel kernel, const puone_module_kernel** out) {
  constexpr const char* entry = "module.declaration";
  uint64_t bits = 0;
  CHECKED(checkOut(entry, out));
  CHECKED(checkHandle(entry, "kernel", live().kernels, kernel, bits));
  return answered(modules->declaration(kernel, out));
}

puone_status unloadModule(puone_module module) {
  constexpr const char* entry = "module.unload";
  if (module == nullptr) return PUONE_OK;
  uint64_t bits = 0;
  CHECKED(checkModule(entry, module, bits));
  if (!live().modules.erase(module)) return checkModule(entry, module, bits);
  // The kernels end first, so that no other thread launches one meanwhile.
  auto ended = modulesKernels().end(module);
  const puone_status status = answered(modules->unload(module));
  if (status != PUONE_OK) {
    modulesKernels().revive(std::move(ended));
    keep<puone_module>(entry, live().modules, module, bits, nullptr);
  }
  return status;
}

puone_module_api wrapped(const puone_module_api& api) {
  puone_module_api result = api;
  result.target = moduleTarget;
  result.compile = compileModule;
  result.load = loadModule;
  result.find = findInModule;
  result.declaration = kernelsDeclaration;
  result.unload = unloadModule;
  return result;
}

// ---- extension "collective" ----

const puone_collective_api* collectives = nullptr;

constexpr int kRankBits = 24;
constexpr int32_t kMostRanks = 1 << kRankBits;

uint64_t communicatorBits(int32_t device, int32_t rank, int32_t size) {
  return static_cast<uint64_t>(size - 1) << (16 + kRankBits) | static_cast<uint64_t>(rank) << 16 |
         static_cast<uint16_t>(device);
}
int32_t communicatorDevice(uint64_t bits) {
  return static_cast<uint16_t>(bits);
}
int32_t rankOf(uint64_t bits) {
  return static_cast<int32_t>(bits >> 16 & (kMostRanks - 1));
}
int32_t sizeOf(uint64_t bits) {
  return static_cast<int32_t>(bits >> (16 + kRankBits)) + 1;
}

puone_status checkCommunicator(const char* entry, puone_communicator communicator, uint64_t& bits) {
  return checkHandle(entry, "communicator", live().communicators, communicator, bits);
}

puone_status checkRank(const char* entry, const char* what, int32_t rank, uint64_t bits) {
  if (rank >= 0 && rank < sizeOf(bits)) return PUONE_OK;
  return refuse(PUONE_INVALID_ARGUMENT, entry, "%s %d is not in [0, %d)", what, rank, sizeOf(bits));
}

puone_status checkReduction(const char* entry, puone_collective_reduction reduction) {
  if (reduction >= PUONE_COLLECTIVE_SUM && reduction <= PUONE_COLLECTIVE_AVERAGE) return PUONE_OK;
  return refuse(
      PUONE_INVALID_ARGUMENT,
      entry,
      "%d is not a puone_collective_reduction",
      static_cast<int>(reduction));
}

/// One call on a communicator: who makes it, and how large the pieces are that it moves.
struct CollectiveCall {
  const char* entry;
  uint64_t bits = 0;  // of the communicator
  uint64_t bytes = 0; // of `count` elements
};

puone_status checkCollective(
    CollectiveCall& call,
    puone_communicator communicator,
    uint64_t count,
    int32_t type,
    puone_stream stream) {
  uint64_t stream_bits = 0;
  CHECKED(checkCommunicator(call.entry, communicator, call.bits));
  CHECKED(checkStream(call.entry, stream, stream_bits));
  if (deviceOf(stream_bits) != communicatorDevice(call.bits)) {
    return refuse(
        PUONE_INVALID_ARGUMENT,
        call.entry,
        "the communicator is of device %d, the stream of device %d",
        communicatorDevice(call.bits),
        deviceOf(stream_bits));
  }
  if (type < 0 || type >= static_cast<int32_t>(std::size(kElementBytes))) {
    return refuse(PUONE_INVALID_ARGUMENT, call.entry, "%d is not a puone_dtype", type);
  }
  const uint64_t most = SIZE_MAX / kElementBytes[type] / static_cast<uint64_t>(sizeOf(call.bits));
  if (count > most) {
    return refuse(
        PUONE_INVALID_ARGUMENT,
        call.entry,
        "%llu elements for each rank are more than memory can hold",
        static_cast<unsigned long long>(count));
  }
  call.bytes = count * kElementBytes[type];
  return PUONE_OK;
}

puone_status checkBuffer(
    const CollectiveCall& call, const char* what, const void* buffer, uint64_t pieces = 1) {
  if (call.bytes == 0) return PUONE_OK;
  return checkDeviceRange(
      call.entry, what, buffer, call.bytes * pieces, communicatorDevice(call.bits));
}

/// Both buffers, of so many pieces each. They may touch in one way only: that the piece of this
/// rank in the larger one is the smaller one.
puone_status checkBuffers(
    const CollectiveCall& call,
    const void* send,
    uint64_t send_pieces,
    const void* recv,
    uint64_t recv_pieces) {
  CHECKED(checkBuffer(call, "send", send, send_pieces));
  CHECKED(checkBuffer(call, "recv", recv, recv_pieces));
  const uint64_t own = call.bytes * static_cast<uint64_t>(rankOf(call.bits));
  const uintptr_t from = address(send);
  const uintptr_t to = address(recv);
  const bool in_place = from + (send_pieces > 1 ? own : 0) == to + (recv_pieces > 1 ? own : 0);
  const bool apart = from + call.bytes * send_pieces <= to || to + call.bytes * recv_pieces <= from;
  if (in_place || apart) return PUONE_OK;
  return refuse(
      PUONE_INVALID_ARGUMENT,
      call.entry,
      "send %p and recv %p overlap, and not as in place",
      send,
      recv);
}

puone_status identifyDevice(int32_t device, puone_device_identity* out) {
  constexpr const char* entry = "collective.identify";
  CHECKED(checkOut(entry, out));
  CHECKED(checkDevice(entry, device));
  return answered(collectives->identify(device, out));
}

puone_status createCollectiveId(puone_collective_id* out) {
  constexpr const char* entry = "collective.create_id";
  CHECKED(checkOut(entry, out));
  CHECKED(checkRunning(entry));
  return answered(collectives->create_id(out));
}

puone_status initCommunicator(
    int32_t device,
    const puone_collective_id* id,
    int32_t rank,
    int32_t size,
    uint32_t timeout_ms,
    puone_communicator* out) {
  constexpr const char* entry = "collective.init";
  CHECKED(checkOut(entry, out));
  CHECKED(checkDevice(entry, device));
  if (id == nullptr) return refuse(PUONE_INVALID_ARGUMENT, entry, "id is NULL");
  if (size < 1 || size > kMostRanks || rank < 0 || rank >= size) {
    return refuse(PUONE_INVALID_ARGUMENT, entry, "there is no rank %d of %d", rank, size);
  }
  puone_communicator made = nullptr;
  CHECKED(answered(collectives->init(device, id, rank, size, timeout_ms, &made)));
  CHECKED(keep(
      entry,
      live().communicators,
      made,
      communicatorBits(device, rank, size),
      collectives->destroy));
  *out = made;
  return PUONE_OK;
}

puone_status destroyCommunicator(puone_communicator communicator) {
  return destroy(
      "collective.destroy",
      "communicator",
      live().communicators,
      communicator,
      collectives->destroy);
}

/// An entry that takes a communicator and nothing else.
template <auto entry_of>
puone_status onCommunicator(const char* entry, puone_communicator communicator) {
  uint64_t bits = 0;
  CHECKED(checkCommunicator(entry, communicator, bits));
  return answered((collectives->*entry_of)(communicator));
}

puone_status abortCommunicator(puone_communicator communicator) {
  return onCommunicator<&puone_collective_api::abort>("collective.abort", communicator);
}
puone_status queryCommunicator(puone_communicator communicator) {
  return onCommunicator<&puone_collective_api::query>("collective.query", communicator);
}
puone_status groupBegin(puone_communicator communicator) {
  return onCommunicator<&puone_collective_api::group_begin>("collective.group_begin", communicator);
}
puone_status groupEnd(puone_communicator communicator) {
  return onCommunicator<&puone_collective_api::group_end>("collective.group_end", communicator);
}

puone_status allReduce(
    puone_communicator communicator,
    const void* send,
    void* recv,
    uint64_t count,
    int32_t type,
    puone_collective_reduction reduction,
    puone_stream stream) {
  CollectiveCall call{"collective.all_reduce"};
  CHECKED(checkCollective(call, communicator, count, type, stream));
  CHECKED(checkReduction(call.entry, reduction));
  CHECKED(checkBuffers(call, send, 1, recv, 1));
  return answered(
      collectives->all_reduce(communicator, send, recv, count, type, reduction, stream));
}

puone_status broadcast(
    puone_communicator communicator,
    const void* send,
    void* recv,
    uint64_t count,
    int32_t type,
    int32_t root,
    puone_stream stream) {
  CollectiveCall call{"collective.broadcast"};
  CHECKED(checkCollective(call, communicator, count, type, stream));
  CHECKED(checkRank(call.entry, "root", root, call.bits));
  CHECKED(
      root == rankOf(call.bits) ? checkBuffers(call, send, 1, recv, 1)
                                : checkBuffer(call, "recv", recv));
  return answered(collectives->broadcast(communicator, send, recv, count, type, root, stream));
}

puone_status reduce(
    puone_communicator communicator,
    const void* send,
    void* recv,
    uint64_t count,
    int32_t type,
    puone_collective_reduction reduction,
    int32_t root,
    puone_stream stream) {
  CollectiveCall call{"collective.reduce"};
  CHECKED(checkCollective(call, communicator, count, type, stream));
  CHECKED(checkReduction(call.entry, reduction));
  CHECKED(checkRank(call.entry, "root", root, call.bits));
  CHECKED(
      root == rankOf(call.bits) ? checkBuffers(call, send, 1, recv, 1)
                                : checkBuffer(call, "send", send));
  return answered(
      collectives->reduce(communicator, send, recv, count, type, reduction, root, stream));
}

puone_status allGather(
    puone_communicator communicator,
    const void* send,
    void* recv,
    uint64_t count,
    int32_t type,
    puone_stream stream) {
  CollectiveCall call{"collective.all_gather"};
  CHECKED(checkCollective(call, communicator, count, type, stream));
  CHECKED(checkBuffers(call, send, 1, recv, static_cast<uint64_t>(sizeOf(call.bits))));
  return answered(collectives->all_gather(communicator, send, recv, count, type, stream));
}

puone_status reduceScatter(
    puone_communicator communicator,
    const void* send,
    void* recv,
    uint64_t count,
    int32_t type,
    puone_collective_reduction reduction,
    puone_stream stream) {
  CollectiveCall call{"collective.reduce_scatter"};
  CHECKED(checkCollective(call, communicator, count, type, stream));
  CHECKED(checkReduction(call.entry, reduction));
  CHECKED(checkBuffers(call, send, static_cast<uint64_t>(sizeOf(call.bits)), recv, 1));
  return answered(
      collectives->reduce_scatter(communicator, send, recv, count, type, reduction, stream));
}

puone_status sendTo(
    puone_communicator communicator,
    const void* buffer,
    uint64_t count,
    int32_t type,
    int32_t peer,
    puone_stream stream) {
  CollectiveCall call{"collective.send"};
  CHECKED(checkCollective(call, communicator, count, type, stream));
  CHECKED(checkRank(call.entry, "peer", peer, call.bits));
  CHECKED(checkBuffer(call, "buffer", buffer));
  return answered(collectives->send(communicator, buffer, count, type, peer, stream));
}

puone_status receiveFrom(
    puone_communicator communicator,
    void* buffer,
    uint64_t count,
    int32_t type,
    int32_t peer,
    puone_stream stream) {
  CollectiveCall call{"collective.recv"};
  CHECKED(checkCollective(call, communicator, count, type, stream));
  CHECKED(checkRank(call.entry, "peer", peer, call.bits));
  CHECKED(checkBuffer(call, "buffer", buffer));
  return answered(collectives->recv(communicator, buffer, count, type, peer, stream));
}

puone_collective_api wrapped(const puone_collective_api& api) {
  puone_collective_api result = api;
  result.identify = identifyDevice;
  result.create_id = createCollectiveId;
  result.init = initCommunicator;
  result.destroy = destroyCommunicator;
  result.abort = abortCommunicator;
  result.query = queryCommunicator;
  result.all_reduce = allReduce;
  result.broadcast = broadcast;
  result.reduce = reduce;
  result.all_gather = allGather;
  result.reduce_scatter = reduceScatter;
  result.send = sendTo;
  result.recv = receiveFrom;
  result.group_begin = groupBegin;
  result.group_end = groupEnd;
  return result;
}

// ---- extensions ----

/// The wrapped table of an extension, created at the first request. Its entries call the driver's
/// through `inner`.
template <class Api>
const void* wrappedOnce(const void* found, const Api*& inner) {
  static std::once_flag once;
  static Api table;
  std::call_once(once, [&] {
    inner = static_cast<const Api*>(found);
    table = wrapped(*inner);
  });
  return &table;
}

puone_status getExtension(const char* name, uint32_t min_version, const void** out) {
  constexpr const char* entry = "get_extension";
  CHECKED(checkOut(entry, out));
  if (name == nullptr) return refuse(PUONE_INVALID_ARGUMENT, entry, "name is NULL");
  const void* found = nullptr;
  CHECKED(answered(driver->get_extension(name, min_version, &found)));
  const std::string_view asked = name;
  if (asked == PUONE_FAULT_EXTENSION) {
    found = wrappedOnce(found, fault);
  } else if (asked == PUONE_DLPACK_EXTENSION) {
    found = wrappedOnce(found, dlpack);
  } else if (asked == PUONE_GRAPH_EXTENSION) {
    found = wrappedOnce(found, graphs);
  } else if (asked == PUONE_TRACE_EXTENSION) {
    found = wrappedOnce(found, tracing);
  } else if (asked == PUONE_IPC_EXTENSION) {
    found = wrappedOnce(found, ipc);
  } else if (asked == PUONE_MODULE_EXTENSION) {
    found = wrappedOnce(found, modules);
  } else if (asked == PUONE_COLLECTIVE_EXTENSION) {
    found = wrappedOnce(found, collectives);
  }
  *out = found;
  return PUONE_OK;
}

#undef CHECKED

// ---- the table ----

/// This layer's entries.
constexpr puone_hal_api kChecked = {
    .struct_size = sizeof(puone_hal_api),
    .abi_major = PUONE_HAL_ABI_MAJOR,
    .abi_minor = PUONE_HAL_ABI_MINOR,
    .init = init,
    .shutdown = shutdown,
    .describe = describe,
    .last_error_message = lastErrorMessage,
    .device_count = deviceCount,
    .device_properties = deviceProperties,
    .device_memory_info = deviceMemoryInfo,
    .device_synchronize = deviceSynchronize,
    .stream_priority_range = streamPriorityRange,
    .device_can_access_peer = deviceCanAccessPeer,
    .malloc = allocate,
    .free = release,
    .host_malloc = allocateHost,
    .host_free = releaseHost,
    .pointer_attributes = pointerAttributes,
    .memcpy_async = memcpyAsync,
    .memset_async = memsetAsync,
    .stream_create = streamCreate,
    .stream_from_native = streamFromNative,
    .stream_destroy = streamDestroy,
    .stream_query = streamQuery,
    .stream_synchronize = streamSynchronize,
    .stream_wait_event = streamWaitEvent,
    .stream_host_func = streamHostFunc,
    .stream_native_handle = streamNativeHandle,
    .event_create = eventCreate,
    .event_destroy = eventDestroy,
    .event_record = eventRecord,
    .event_query = eventQuery,
    .event_synchronize = eventSynchronize,
    .event_elapsed_ms = eventElapsedMs,
    .kernel_find = kernelFind,
    .kernel_launch = kernelLaunch,
    .get_extension = getExtension,
};

constexpr bool everyEntryIsChecked() {
  bool result = true;
  forEachEntry(
      [&](const char*, auto entry, uint64_t) { result = result && kChecked.*entry != nullptr; });
  return result;
}
static_assert(everyEntryIsChecked());

/// The capabilities that the driver declares.
uint64_t declared(const puone_hal_api& inner) {
  puone_driver_info info{};
  info.struct_size = sizeof info;
  if (inner.describe == nullptr || inner.describe(&info) != PUONE_OK) return 0;
  return info.capabilities;
}

puone_hal_api wrapped(const puone_hal_api& inner) {
  puone_hal_api table{};
  const size_t known = std::min<size_t>(inner.struct_size, sizeof table);
  std::memcpy(&table, &inner, known);
  table.struct_size = static_cast<uint32_t>(known);
  const auto wrap = [&](auto entry) {
    if (table.*entry != nullptr) table.*entry = kChecked.*entry;
  };
  // An entry that no capability promises is the driver's to refuse: UNSUPPORTED comes first.
  forEachEntry([&](const char*, auto entry, uint64_t capability) {
    if (has(capability)) wrap(entry);
  });
  forEachDeviceEntry([&](const char*, auto entry, uint64_t) { wrap(entry); });
  wrap(&puone_hal_api::last_error_message);
  wrap(&puone_hal_api::get_extension);
  return table;
}

} // namespace

const puone_hal_api* validated(const puone_hal_api& inner, bool only_own_memory) {
  static const puone_hal_api* const table = [&] {
    driver = &inner;
    capabilities = declared(inner);
    knows_own_memory_only = only_own_memory;
    live();
    return new puone_hal_api(wrapped(inner)); // leaked: it lives as long as the process
  }();
  return driver == &inner ? table : nullptr;
}

} // namespace puone
