// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/sim/driver.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "drivers/sim/host_guard.h"
#include "drivers/sim/launch.h"

namespace puone::sim {
namespace {

thread_local int32_t current_device = 0;

/// Bytes whose transfer takes longer than waking a thread for it.
constexpr size_t kLargeTransfer = 128 << 10;

/// A copy or fill: `body` is called with the launch that can spread it.
template <class Body>
struct TransferWork final : Work {
  TransferWork(const char* name, size_t bytes, const Memory& m, Parallel& p, Body b)
      : Work(Kind::kDevice, name, bytes >= kLargeTransfer),
        memory(m),
        parallel(p),
        body(std::move(b)) {}
  uint64_t run() override {
    SimLaunch launch(memory, parallel);
    body(launch);
    return 0;
  }
  const Memory& memory;
  Parallel& parallel;
  const Body body;
};

template <class Body>
std::unique_ptr<Work> transfer(
    const char* name, size_t bytes, const Memory& memory, Parallel& parallel, Body body) {
  return std::make_unique<TransferWork<Body>>(name, bytes, memory, parallel, std::move(body));
}

struct HostFunctionWork final : Work {
  HostFunctionWork(puone_host_func f, void* u)
      : Work(Kind::kHostFunction, "stream_host_func", true), function(f), user_data(u) {}
  uint64_t run() override {
    function(user_data);
    return 0;
  }
  const puone_host_func function;
  void* const user_data;
};

struct alignas(std::max_align_t) KernelWork final : Work {
  KernelWork(const NamedKernel& k, const void* a, const Memory& m, Parallel& p, bool f)
      : Work(Kind::kDevice, k.name.c_str(), false),
        kernel(k.kernel),
        memory(m),
        parallel(p),
        planted_failure(f) {
    std::memcpy(args(), a, kernel.args_size);
  }
  /// The kernel's arguments, behind the object.
  void* args() {
    return this + 1;
  }
  uint64_t run() override {
    if (planted_failure) fail(PUONE_INTERNAL, "planted by the fault extension");
    SimLaunch launch(memory, parallel);
    kernel.run(launch, args());
    launch.throwFault();
    return launch.delayNs();
  }
  const kernels::Kernel& kernel;
  const Memory& memory;
  Parallel& parallel;
  const bool planted_failure;
};

/// The kernels of the instruction set asked for, or of the best that this processor has.
std::vector<NamedKernel> namedKernels(const std::string& isa) {
  const kernels::Variant* chosen = nullptr;
  std::string known;
  for (const kernels::Variant& variant : kernels::variants()) {
    if (!variant.usable) continue;
    known += std::string(known.empty() ? "" : ", ") + variant.isa;
    if (isa.empty() || isa == variant.isa) chosen = &variant;
  }
  if (chosen == nullptr) {
    fail(
        PUONE_INTERNAL,
        "PUONE_SIM_ISA=%s is not valid: expected one of %s",
        isa.c_str(),
        known.c_str());
  }
  std::vector<NamedKernel> named;
  for (const kernels::Kernel& kernel : chosen->kernels) {
    named.push_back({kernel, std::string("kernel ") + kernel.name});
  }
  return named;
}

} // namespace

Driver::Driver(const Options& options)
    : options_(options),
      kernels_(namedKernels(options.isa)),
      memory_(options.devices, options.memory, options.poison),
      parallel_(options.cores),
      scheduler_(options, parallel_) {
  watchAccesses(memory_);
}

Driver::~Driver() {
  forgetAccesses();
}

// ---- device ----

void Driver::checkDevice(int32_t device) const {
  if (device < 0 || device >= options_.devices) {
    fail(PUONE_INVALID_DEVICE, "device %d is not in [0, %d)", device, options_.devices);
  }
}

void Driver::setDevice(int32_t device) {
  checkDevice(device);
  const Lock lock = scheduler_.lock();
  scheduler_.checkAlive(device);
  current_device = device;
}

int32_t Driver::currentDevice() const {
  return current_device;
}

void Driver::properties(int32_t device, puone_device_properties* out) const {
  checkDevice(device);
  *out = {};
  std::snprintf(out->name, sizeof out->name, "PUOne simulated accelerator %d", device);
  out->total_memory = memory_.capacity();
  out->multiprocessor_count = options_.cores;
  out->warp_size = 1;
  out->memory_alignment = Memory::kAlignment;
}

void Driver::memoryInfo(int32_t device, uint64_t* free_bytes, uint64_t* total_bytes) const {
  checkDevice(device);
  *free_bytes = memory_.freeBytes(device);
  *total_bytes = memory_.capacity();
}

void Driver::synchronizeDevice(int32_t device) {
  checkDevice(device);
  Lock lock = scheduler_.lock();
  scheduler_.waitDevice(lock, device);
  scheduler_.checkAlive(device);
  scheduler_.reportDevice(device);
}

void Driver::priorityRange(int32_t* least, int32_t* greatest) const {
  *least = 0;
  *greatest = -(Scheduler::kPriorities - 1);
}

int32_t Driver::canAccessPeer(int32_t device, int32_t peer) const {
  checkDevice(device);
  checkDevice(peer);
  return 1;
}

// ---- memory ----

void* Driver::allocate(size_t bytes) {
  checkDevice(current_device);
  {
    const Lock lock = scheduler_.lock();
    scheduler_.checkAlive(current_device);
  }
  if (bytes == 0) fail(PUONE_INVALID_ARGUMENT, "bytes is 0");
  if (faults_.out_of_memory.fires()) {
    fail(
        PUONE_OUT_OF_MEMORY,
        "puone:%d: tried to allocate %s: planted by the fault extension",
        current_device,
        humanBytes(bytes).c_str());
  }
  return memory_.allocate(current_device, bytes);
}

void Driver::release(void* pointer) {
  const Memory::Retired block = memory_.retire(pointer);
  Lock lock = scheduler_.lock();
  scheduler_.waitDevice(lock, block.device);
  lock.unlock();
  memory_.release(block);
}

void* Driver::allocateHost(size_t bytes) {
  if (bytes == 0) fail(PUONE_INVALID_ARGUMENT, "bytes is 0");
  return memory_.allocateHost(bytes);
}

void Driver::releaseHost(void* pointer) {
  void* block = memory_.retireHost(pointer);
  Lock lock = scheduler_.lock();
  for (int32_t device = 0; device < options_.devices; ++device) {
    scheduler_.waitDevice(lock, device);
  }
  lock.unlock();
  Memory::releaseHost(block);
}

puone_pointer_attributes Driver::attributes(const void* pointer) const {
  return memory_.attributes(pointer);
}

/// `devices`: which ones the two ranges are on, -1 for the host.
void Driver::checkCopy(
    const void* to,
    const void* from,
    size_t bytes,
    puone_memcpy_kind kind,
    int32_t devices[2]) const {
  if (kind < PUONE_MEMCPY_HOST_TO_HOST || kind > PUONE_MEMCPY_DEVICE_TO_DEVICE) {
    fail(PUONE_INVALID_ARGUMENT, "%d is not a puone_memcpy_kind", static_cast<int>(kind));
  }
  const auto check = [&](const char* what, const void* pointer, bool device) {
    if (device) return memory_.checkDevice(what, pointer, bytes);
    memory_.checkHost(what, pointer, bytes);
    return -1;
  };
  devices[0] = check("dst", to, (kind & 1) != 0);
  devices[1] = check("src", from, (kind & 2) != 0);
  const auto a = reinterpret_cast<uintptr_t>(to);
  const auto b = reinterpret_cast<uintptr_t>(from);
  if (a - b < bytes || b - a < bytes) {
    fail(PUONE_INVALID_ARGUMENT, "the ranges %p and %p of %zu bytes overlap", to, from, bytes);
  }
}

void Driver::copy(
    void* to, const void* from, size_t bytes, puone_memcpy_kind kind, puone_stream handle) {
  int32_t devices[2] = {-1, -1};
  if (bytes > 0) checkCopy(to, from, bytes, kind, devices);
  queue(handle, [&]() -> std::unique_ptr<Work> {
    if (bytes == 0) return nullptr;
    for (const int32_t device : devices) {
      if (device >= 0) scheduler_.checkAlive(device);
    }
    return transfer(
        "memcpy_async",
        bytes,
        memory_,
        parallel_,
        [to = memory_.backing(to), from = memory_.backing(from), bytes](SimLaunch& launch) {
          launch.copyBytes(to, from, bytes);
        });
  });
}

void Driver::set(void* to, int32_t value, size_t bytes, puone_stream handle) {
  const int32_t device = bytes > 0 ? memory_.checkDevice("dst", to, bytes) : -1;
  queue(handle, [&]() -> std::unique_ptr<Work> {
    if (bytes == 0) return nullptr;
    scheduler_.checkAlive(device);
    return transfer(
        "memset_async",
        bytes,
        memory_,
        parallel_,
        [to = memory_.backing(to), value, bytes](SimLaunch& launch) {
          launch.fillBytes(to, value & 0xff, bytes);
        });
  });
}

// ---- stream ----

template <class Make>
void Driver::queue(puone_stream handle, const Make& make) {
  const Lock lock = scheduler_.lock();
  const std::shared_ptr<Stream>& stream = streams_.get(handle);
  scheduler_.checkAlive(stream->device);
  if (std::unique_ptr<Work> work = make()) scheduler_.submit(stream, std::move(work));
}

puone_stream Driver::createStream(int32_t priority) {
  checkDevice(current_device);
  const Lock lock = scheduler_.lock();
  scheduler_.checkAlive(current_device);
  const int32_t least_urgent = Scheduler::kPriorities - 1;
  const int32_t list = std::clamp(priority, -least_urgent, 0) + least_urgent;
  return static_cast<puone_stream>(streams_.add(std::make_shared<Stream>(current_device, list)));
}

void Driver::destroyStream(puone_stream handle) {
  // With work queued the stream lives on until it is idle; an unreported error keeps it for the
  // next device_synchronize.
  std::shared_ptr<Stream> last;
  const Lock lock = scheduler_.lock();
  last = streams_.remove(handle);
}

void* Driver::nativeStream(puone_stream handle) {
  const Lock lock = scheduler_.lock();
  scheduler_.checkAlive(streams_.get(handle)->device);
  return handle;
}

puone_status Driver::queryStream(puone_stream handle) {
  const Lock lock = scheduler_.lock();
  const Stream& stream = *streams_.get(handle);
  scheduler_.checkAlive(stream.device);
  scheduler_.report(stream, stream.submitted);
  if (stream.state == Stream::State::kIdle) return PUONE_OK;
  scheduler_.hurry();
  return PUONE_NOT_READY;
}

void Driver::synchronizeStream(puone_stream handle) {
  Lock lock = scheduler_.lock();
  const std::shared_ptr<Stream> stream = streams_.get(handle);
  const uint64_t sequence = stream->submitted;
  scheduler_.wait(lock, stream, sequence, true);
  scheduler_.checkAlive(stream->device);
  scheduler_.report(*stream, sequence);
}

void Driver::waitEvent(puone_stream stream_handle, puone_event event_handle) {
  const Lock lock = scheduler_.lock();
  const std::shared_ptr<Stream>& stream = streams_.get(stream_handle);
  const Event& event = *events_.get(event_handle);
  scheduler_.checkAlive(stream->device);
  if (event.last == nullptr || event.last->done) return;
  scheduler_.submit(
      stream, std::make_unique<Work>(Work::Kind::kWait, "stream_wait_event", event.last));
}

void Driver::hostFunction(puone_stream handle, puone_host_func function, void* user_data) {
  if (function == nullptr) fail(PUONE_INVALID_ARGUMENT, "fn is NULL");
  queue(handle, [&] { return std::make_unique<HostFunctionWork>(function, user_data); });
}

// ---- event ----

puone_event Driver::createEvent(uint32_t flags) {
  checkDevice(current_device);
  constexpr uint32_t known = PUONE_EVENT_TIMING | PUONE_EVENT_BLOCKING_SYNC;
  if ((flags & ~known) != 0) fail(PUONE_INVALID_ARGUMENT, "unknown event flags 0x%x", flags);
  const Lock lock = scheduler_.lock();
  scheduler_.checkAlive(current_device);
  return static_cast<puone_event>(
      events_.add(std::make_shared<Event>(Event{current_device, flags, nullptr})));
}

void Driver::destroyEvent(puone_event handle) {
  std::shared_ptr<Event> last;
  const Lock lock = scheduler_.lock();
  last = events_.remove(handle);
}

void Driver::record(puone_event event_handle, puone_stream stream_handle) {
  const Lock lock = scheduler_.lock();
  Event& event = *events_.get(event_handle);
  const std::shared_ptr<Stream>& stream = streams_.get(stream_handle);
  if (event.device != stream->device) {
    fail(
        PUONE_INVALID_ARGUMENT,
        "the event is of puone:%d, the stream of puone:%d",
        event.device,
        stream->device);
  }
  scheduler_.checkAlive(event.device);
  auto record = std::make_shared<Record>();
  record->stream = stream;
  record->timed = (event.flags & PUONE_EVENT_TIMING) != 0;
  scheduler_.submit(stream, std::make_unique<Work>(Work::Kind::kRecord, "event_record", record));
  event.last = std::move(record);
}

puone_status Driver::queryEvent(puone_event handle) {
  const Lock lock = scheduler_.lock();
  const Event& event = *events_.get(handle);
  scheduler_.checkAlive(event.device);
  if (event.last == nullptr) return PUONE_OK;
  scheduler_.report(*event.last->stream, event.last->sequence);
  if (event.last->done) return PUONE_OK;
  scheduler_.hurry();
  return PUONE_NOT_READY;
}

void Driver::synchronizeEvent(puone_event handle) {
  Lock lock = scheduler_.lock();
  const std::shared_ptr<Event> event = events_.get(handle);
  if (const std::shared_ptr<Record> record = event->last) {
    const bool spin = (event->flags & PUONE_EVENT_BLOCKING_SYNC) == 0;
    scheduler_.wait(lock, record->stream, record->sequence, spin);
    scheduler_.checkAlive(event->device);
    scheduler_.report(*record->stream, record->sequence);
  }
  scheduler_.checkAlive(event->device);
}

puone_status Driver::elapsed(puone_event start_handle, puone_event end_handle, float* out) {
  const Lock lock = scheduler_.lock();
  const Event& start = *events_.get(start_handle);
  const Event& end = *events_.get(end_handle);
  if ((start.flags & end.flags & PUONE_EVENT_TIMING) == 0) {
    fail(PUONE_INVALID_ARGUMENT, "both events need PUONE_EVENT_TIMING");
  }
  if (start.last == nullptr || end.last == nullptr) {
    fail(PUONE_INVALID_ARGUMENT, "both events must have been recorded");
  }
  if (start.device != end.device) {
    fail(
        PUONE_INVALID_ARGUMENT,
        "the events are of puone:%d and puone:%d",
        start.device,
        end.device);
  }
  scheduler_.checkAlive(start.device);
  if (!start.last->done || !end.last->done) return PUONE_NOT_READY;
  const auto ns = static_cast<int64_t>(end.last->time_ns - start.last->time_ns);
  *out = static_cast<float>(static_cast<double>(ns) * 1e-6);
  return PUONE_OK;
}

// ---- kernel ----

puone_kernel Driver::findKernel(const char* name) const {
  for (const NamedKernel& named : kernels_) {
    if (std::strcmp(named.kernel.name, name) == 0) return reinterpret_cast<puone_kernel>(&named);
  }
  fail(PUONE_UNSUPPORTED, "no kernel is named %.100s", name);
}

void Driver::launch(puone_kernel handle, const void* args, size_t bytes, puone_stream stream) {
  const auto* named = reinterpret_cast<const NamedKernel*>(handle);
  if (std::none_of(kernels_.begin(), kernels_.end(), [&](const auto& k) { return &k == named; })) {
    fail(PUONE_INVALID_ARGUMENT, "%p is not a kernel", static_cast<const void*>(handle));
  }
  if (args == nullptr) fail(PUONE_INVALID_ARGUMENT, "args is NULL");
  if (bytes != named->kernel.args_size) {
    fail(
        PUONE_INVALID_ARGUMENT,
        "%s takes %zu bytes of arguments, not %zu",
        named->name.c_str(),
        named->kernel.args_size,
        bytes);
  }
  queue(stream, [&] {
    return std::unique_ptr<KernelWork>(new (Work::Behind{bytes}) KernelWork(
        *named, args, memory_, parallel_, faults_.kernel_error.fires()));
  });
}

// ---- faults ----

void Driver::loseDevice(int32_t device) {
  checkDevice(device);
  const Lock lock = scheduler_.lock();
  scheduler_.loseDevice(device);
}

void Driver::setLatency(uint64_t ns) {
  const Lock lock = scheduler_.lock();
  scheduler_.setLatency(ns);
}

void Driver::clearFaults() {
  faults_.out_of_memory.arm(0);
  faults_.kernel_error.arm(0);
  const Lock lock = scheduler_.lock();
  scheduler_.clearFaults();
}

// ---- fork ----

void Driver::lockAll() {
  scheduler_.mutex().lock();
  memory_.lock();
  parallel_.lock();
}

void Driver::unlockAll() {
  parallel_.unlock();
  memory_.unlock();
  scheduler_.mutex().unlock();
}

} // namespace puone::sim
