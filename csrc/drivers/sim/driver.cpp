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

/// Transfers of at least this many bytes take longer than waking a thread.
constexpr size_t kLargeTransfer = 128 << 10;
/// Transfers of at most this many bytes take less time than to release and take a lock.
constexpr size_t kBriefTransfer = 256;

/// A copy or fill. `body` is called with the launch, which can spread it over cores.
template <class Body>
struct TransferWork final : Work {
  TransferWork(const char* name, size_t bytes, const Memory& m, Parallel& p, Body b)
      : Work(Kind::kDevice, name, bytes >= kLargeTransfer, bytes <= kBriefTransfer),
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

/// A kernel and its arguments, which follow the object in the same allocation.
struct alignas(std::max_align_t) KernelWork final : Work {
  static std::unique_ptr<Work> make(
      const NamedKernel& k, const void* args, const Memory& m, Parallel& p, bool fails) {
    const Behind behind{k.kernel.args_size};
    return std::unique_ptr<Work>(new (behind) KernelWork(k, args, m, p, fails));
  }

  uint64_t run() override {
    if (injected_error) fail(PUONE_INTERNAL, "injected by the fault extension");
    SimLaunch launch(memory, parallel);
    kernel.run(launch, args());
    launch.throwDeviceError();
    return launch.delayNs();
  }
  void* args() {
    return this + 1;
  }
  const kernels::Kernel& kernel;
  const Memory& memory;
  Parallel& parallel;
  const bool injected_error;

 private:
  KernelWork(const NamedKernel& k, const void* a, const Memory& m, Parallel& p, bool fails)
      : Work(Kind::kDevice, k.name.c_str(), false),
        kernel(k.kernel),
        memory(m),
        parallel(p),
        injected_error(fails) {
    std::memcpy(args(), a, kernel.args_size);
  }
};
static_assert(alignof(KernelWork) >= alignof(uint64_t), "as the argument structs are aligned");

/// The kernels of the requested instruction set, by default the best one of this processor.
std::span<const kernels::Kernel> kernelsFor(const std::string& isa) {
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
  return chosen->kernels;
}

} // namespace

Driver::Driver(const Options& options)
    : options_(options),
      kernels_(withNames(kernelsFor(options.isa))),
      memory_(options.devices, options.memory, options.poison),
      parallel_(options.cores),
      scheduler_(options, parallel_) {
  watchAccesses(memory_);
}

Driver::~Driver() {
  forgetAccesses();
}

// ---- device ----

puone_device_properties Driver::properties(int32_t device) const {
  puone_device_properties properties{};
  std::snprintf(properties.name, sizeof properties.name, "PUOne simulated accelerator %d", device);
  properties.total_memory = memory_.capacity();
  properties.multiprocessor_count = options_.cores;
  properties.warp_size = 1;
  properties.memory_alignment = Memory::kAlignment;
  return properties;
}

void Driver::memoryInfo(int32_t device, uint64_t* free_bytes, uint64_t* total_bytes) const {
  *free_bytes = memory_.freeBytes(device);
  *total_bytes = memory_.capacity();
}

void Driver::synchronizeDevice(int32_t device) {
  Lock lock = scheduler_.lock();
  scheduler_.waitDevice(lock, device);
  scheduler_.checkAlive(device);
  scheduler_.reportDevice(device);
}

void Driver::priorityRange(int32_t /*device*/, int32_t* least, int32_t* greatest) const {
  *least = 0;
  *greatest = -(Scheduler::kPriorities - 1);
}

int32_t Driver::canAccessPeer(int32_t /*device*/, int32_t /*peer*/) const {
  return 1;
}

// ---- memory ----

void* Driver::allocate(int32_t device, size_t bytes) {
  {
    const Lock lock = scheduler_.lock();
    scheduler_.checkAlive(device);
  }
  if (faults_.out_of_memory.fires()) {
    fail(
        PUONE_OUT_OF_MEMORY,
        "puone:%d: tried to allocate %s: injected by the fault extension",
        device,
        humanBytes(bytes).c_str());
  }
  return memory_.allocate(device, bytes);
}

void Driver::release(void* pointer) {
  const Memory::Retired block = memory_.retire(pointer);
  Lock lock = scheduler_.lock();
  scheduler_.waitDevice(lock, block.device);
  lock.unlock();
  memory_.release(block);
}

void* Driver::allocateHost(size_t bytes) {
  return memory_.allocateHost(bytes);
}

void Driver::releaseHost(void* pointer) {
  memory_.retireHost(pointer);
  Lock lock = scheduler_.lock();
  for (int32_t device = 0; device < options_.devices; ++device) {
    scheduler_.waitDevice(lock, device);
  }
  lock.unlock();
  Memory::releaseHost(pointer);
}

puone_pointer_attributes Driver::attributes(const void* pointer) const {
  return memory_.attributes(pointer);
}

void Driver::checkAlive(const void* address) const {
  if (memory_.isDevice(address)) scheduler_.checkAlive(memory_.deviceOf(address));
}

void Driver::copy(
    void* to, const void* from, size_t bytes, puone_memcpy_kind /*kind*/, puone_stream handle) {
  queue(handle, [&]() -> std::unique_ptr<Work> {
    if (bytes == 0) return nullptr;
    checkAlive(to);
    checkAlive(from);
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
  queue(handle, [&]() -> std::unique_ptr<Work> {
    if (bytes == 0) return nullptr;
    checkAlive(to);
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

namespace {

const std::shared_ptr<Stream>& streamOf(puone_stream handle) {
  return reinterpret_cast<const StreamHandle*>(handle)->stream;
}
Event& eventOf(puone_event handle) {
  return *reinterpret_cast<Event*>(handle);
}

} // namespace

template <class Make>
void Driver::queue(puone_stream handle, const Make& make) {
  const std::shared_ptr<Stream>& stream = streamOf(handle);
  const Lock lock = scheduler_.lock();
  scheduler_.checkAlive(stream->device);
  if (std::unique_ptr<Work> work = make()) scheduler_.submit(stream, std::move(work));
}

puone_stream Driver::addHandle(std::shared_ptr<Stream> stream) {
  auto handle = std::make_unique<StreamHandle>(std::move(stream));
  StreamHandle* const raw = handle.get();
  streams_.emplace(raw, std::move(handle));
  return reinterpret_cast<puone_stream>(raw);
}

puone_stream Driver::createStream(int32_t device, int32_t priority) {
  const Lock lock = scheduler_.lock();
  scheduler_.checkAlive(device);
  const int32_t least_urgent = Scheduler::kPriorities - 1;
  const int32_t list = std::clamp(priority, -least_urgent, 0) + least_urgent;
  return addHandle(std::make_shared<Stream>(device, list));
}

puone_stream Driver::wrapStream(int32_t device, void* native) {
  const Lock lock = scheduler_.lock();
  scheduler_.checkAlive(device);
  for (const auto& [raw, handle] : streams_) {
    if (handle->stream.get() == native && handle->stream->device == device) {
      return addHandle(std::shared_ptr<Stream>(handle->stream));
    }
  }
  fail(PUONE_INVALID_ARGUMENT, "%p is not a native stream of puone:%d", native, device);
}

void Driver::destroyStream(puone_stream handle) {
  // A stream with queued work exists until it is idle; one with an unreported error, until the next
  // device_synchronize.
  std::shared_ptr<Stream> last; // may be deleted after the lock is released
  const Lock lock = scheduler_.lock();
  const auto found = streams_.find(reinterpret_cast<const StreamHandle*>(handle));
  last = std::move(found->second->stream);
  destroyed_streams_.add(std::move(found->second));
  streams_.erase(found);
}

void* Driver::nativeStream(puone_stream handle) {
  const Lock lock = scheduler_.lock();
  scheduler_.checkAlive(streamOf(handle)->device);
  return streamOf(handle).get();
}

puone_status Driver::queryStream(puone_stream handle) {
  const Lock lock = scheduler_.lock();
  const Stream& stream = *streamOf(handle);
  scheduler_.checkAlive(stream.device);
  scheduler_.report(stream, stream.submitted);
  if (stream.state == Stream::State::kIdle) return PUONE_OK;
  scheduler_.hurry();
  return PUONE_NOT_READY;
}

void Driver::synchronizeStream(puone_stream handle) {
  Lock lock = scheduler_.lock();
  const std::shared_ptr<Stream> stream = streamOf(handle);
  const uint64_t sequence = stream->submitted;
  scheduler_.wait(lock, stream, sequence, true);
  scheduler_.checkAlive(stream->device);
  scheduler_.report(*stream, sequence);
}

void Driver::waitEvent(puone_stream stream_handle, puone_event event_handle) {
  const Lock lock = scheduler_.lock();
  const std::shared_ptr<Stream>& stream = streamOf(stream_handle);
  const Event& event = eventOf(event_handle);
  scheduler_.checkAlive(stream->device);
  if (event.last == nullptr || event.last->done) return;
  scheduler_.submit(
      stream, std::make_unique<Work>(Work::Kind::kWait, "stream_wait_event", event.last));
}

void Driver::hostFunction(puone_stream handle, puone_host_func function, void* user_data) {
  queue(handle, [&] { return std::make_unique<HostFunctionWork>(function, user_data); });
}

// ---- event ----

puone_event Driver::createEvent(int32_t device, uint32_t flags) {
  const Lock lock = scheduler_.lock();
  scheduler_.checkAlive(device);
  auto event = std::make_unique<Event>(Event{device, flags, nullptr});
  Event* const raw = event.get();
  events_.emplace(raw, std::move(event));
  return reinterpret_cast<puone_event>(raw);
}

void Driver::destroyEvent(puone_event handle) {
  std::shared_ptr<Record> last; // may be deleted after the lock is released
  const Lock lock = scheduler_.lock();
  const auto found = events_.find(&eventOf(handle));
  last = std::move(found->second->last);
  destroyed_events_.add(std::move(found->second));
  events_.erase(found);
}

void Driver::record(puone_event event_handle, puone_stream stream_handle) {
  const Lock lock = scheduler_.lock();
  Event& event = eventOf(event_handle);
  const std::shared_ptr<Stream>& stream = streamOf(stream_handle);
  scheduler_.checkAlive(event.device);
  auto record = std::make_shared<Record>();
  record->stream = stream;
  record->timed = (event.flags & PUONE_EVENT_TIMING) != 0;
  scheduler_.submit(stream, std::make_unique<Work>(Work::Kind::kRecord, "event_record", record));
  event.last = std::move(record);
}

puone_status Driver::queryEvent(puone_event handle) {
  const Lock lock = scheduler_.lock();
  const Event& event = eventOf(handle);
  scheduler_.checkAlive(event.device);
  if (event.last == nullptr) return PUONE_OK;
  scheduler_.report(*event.last->stream, event.last->sequence);
  if (event.last->done) return PUONE_OK;
  scheduler_.hurry();
  return PUONE_NOT_READY;
}

void Driver::synchronizeEvent(puone_event handle) {
  Lock lock = scheduler_.lock();
  const Event& event = eventOf(handle);
  const int32_t device = event.device; // the event may be destroyed during the wait
  const bool spin = (event.flags & PUONE_EVENT_BLOCKING_SYNC) == 0;
  if (const std::shared_ptr<Record> record = event.last) {
    scheduler_.wait(lock, record->stream, record->sequence, spin);
    scheduler_.checkAlive(device);
    scheduler_.report(*record->stream, record->sequence);
  }
  scheduler_.checkAlive(device);
}

puone_status Driver::elapsed(puone_event start_handle, puone_event end_handle, float* out) {
  const Lock lock = scheduler_.lock();
  const Event& start = eventOf(start_handle);
  const Event& end = eventOf(end_handle);
  scheduler_.checkAlive(start.device);
  if (!start.last->done || !end.last->done) return PUONE_NOT_READY;
  const auto ns = static_cast<int64_t>(end.last->time_ns - start.last->time_ns);
  *out = static_cast<float>(static_cast<double>(ns) * 1e-6);
  return PUONE_OK;
}

// ---- kernel ----

puone_kernel Driver::findKernel(const char* name, puone_kernel_info* info) const {
  return puone::findKernel(kernels_, name, info);
}

void Driver::launch(
    puone_kernel kernel,
    const void* args,
    puone_stream stream,
    const puone_launch_context* /*context*/) {
  queue(stream, [&] {
    return KernelWork::make(
        kernelOf(kernel), args, memory_, parallel_, faults_.kernel_error.fires());
  });
}

// ---- injected faults ----

void Driver::loseDevice(int32_t device) {
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
