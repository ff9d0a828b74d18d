// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/cuda/driver.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "drivers/common/error.h"
#include "drivers/cuda/on_device.h"
#include "drivers/cuda/probe.h"

namespace puone::kernels::simt {
std::span<const Kernel> kernels(); // registry.cpp
} // namespace puone::kernels::simt

namespace puone::cuda {
namespace {

thread_local int32_t current_device = 0;

std::vector<NamedKernel> namedKernels() {
  std::vector<NamedKernel> named;
  for (const kernels::Kernel& kernel : kernels::simt::kernels()) {
    named.push_back(
        {kernel, kernels::contractOf(kernel.name), std::string("kernel ") + kernel.name});
  }
  return named;
}

} // namespace

Driver::Driver() : kernels_(namedKernels()) {}

Driver::~Driver() {
  for (const auto& device : opened_) finish(device->index);
}

// ---- device ----

int32_t Driver::count() const {
  return deviceCount();
}

void Driver::checkDevice(int32_t device) const {
  if (device < 0 || device >= count()) {
    fail(PUONE_INVALID_DEVICE, "device %d is not in [0, %d)", device, count());
  }
}

Device& Driver::use(int32_t device) {
  checkDevice(device);
  checkAlive(device);
  Device* opened = devices_[device].load(std::memory_order_acquire);
  return opened != nullptr ? *opened : open(device);
}

Device& Driver::open(int32_t index) {
  const std::lock_guard guard(opening_);
  if (Device* opened = devices_[index].load(std::memory_order_relaxed)) return *opened;
  used_.store(true, std::memory_order_relaxed);
  const OnDevice scope(index);
  auto device = std::make_unique<Device>(index, faults_);
  // Kernels may address any memory in use, and only they know which: every pair of devices in use
  // that can reach each other does.
  for (const auto& peer : opened_) {
    enablePeerAccess(index, peer->index);
    const OnDevice there(peer->index);
    enablePeerAccess(peer->index, index);
  }
  opened_.push_back(std::move(device));
  devices_[index].store(opened_.back().get(), std::memory_order_release);
  return *opened_.back();
}

void Driver::setDevice(int32_t device) {
  checkDevice(device);
  checkAlive(device);
  current_device = device;
}

int32_t Driver::currentDevice() const {
  return current_device;
}

void Driver::properties(int32_t device, puone_device_properties* out) {
  checkDevice(device);
  used_.store(true, std::memory_order_relaxed);
  cudaDeviceProp found;
  check("cudaGetDeviceProperties", cudaGetDeviceProperties(&found, device));
  *out = {};
  std::snprintf(out->name, sizeof out->name, "%.*s", PUONE_NAME_MAX - 1, found.name);
  out->total_memory = found.totalGlobalMem;
  out->major = found.major;
  out->minor = found.minor;
  out->multiprocessor_count = found.multiProcessorCount;
  out->warp_size = found.warpSize;
  out->memory_alignment = Memory::kAlignment;
}

void Driver::memoryInfo(int32_t device, uint64_t* free_bytes, uint64_t* total_bytes) {
  use(device);
  const OnDevice scope(device);
  size_t available = 0;
  size_t total = 0;
  check("cudaMemGetInfo", cudaMemGetInfo(&available, &total));
  *free_bytes = available;
  *total_bytes = total;
}

void Driver::waitForDevice(int32_t index) {
  Device* device = devices_[index].load(std::memory_order_acquire);
  if (device == nullptr) return; // nothing was ever queued
  const OnDevice scope(index);
  if (!captures_.any()) {
    check("cudaDeviceSynchronize", cudaDeviceSynchronize());
    return;
  }
  // The whole device cannot be waited for while one of its streams is being captured.
  device->streams.forEach([](const NativeStream& stream) {
    if (Captures::isPart(stream.get())) return;
    check("cudaStreamSynchronize", cudaStreamSynchronize(stream.get()));
  });
}

void Driver::finish(int32_t device) noexcept {
  if (isLost(device)) return;
  try {
    waitForDevice(device);
  } catch (const Error&) {
    // A loss has been noted, and nothing else can be done about it here.
  }
}

template <class Source>
void Driver::report(Source& source, Ticket until) {
  const std::lock_guard guard(reporting_);
  if (const std::optional<Failure> failure = source.failure(until)) {
    *failure->record = {};
    throw Error{PUONE_INTERNAL, failure->text};
  }
  source.release(until);
}

void Driver::synchronizeDevice(int32_t device) {
  checkDevice(device);
  checkAlive(device);
  const Ticket until = faults_.latest();
  waitForDevice(device);
  if (Device* opened = devices_[device].load(std::memory_order_acquire)) {
    report(opened->streams, until);
  }
}

void Driver::priorityRange(int32_t* least, int32_t* greatest) {
  if (count() == 0) {
    *least = *greatest = 0;
    return;
  }
  use(current_device);
  const OnDevice scope(current_device);
  int low = 0;
  int high = 0;
  check("cudaDeviceGetStreamPriorityRange", cudaDeviceGetStreamPriorityRange(&low, &high));
  *least = low;
  *greatest = high;
}

int32_t Driver::canAccessPeer(int32_t device, int32_t peer) {
  checkDevice(device);
  checkDevice(peer);
  if (device == peer) return 1;
  used_.store(true, std::memory_order_relaxed);
  int can = 0;
  check("cudaDeviceCanAccessPeer", cudaDeviceCanAccessPeer(&can, device, peer));
  return can;
}

// ---- memory ----

void* Driver::allocate(size_t bytes) {
  const Device& device = use(current_device);
  if (bytes == 0) fail(PUONE_INVALID_ARGUMENT, "bytes is 0");
  const OnDevice scope(current_device);
  return memory_.allocate(current_device, bytes, device.memory);
}

void Driver::release(void* pointer) {
  const int32_t device = memory_.retire(pointer);
  finish(device);
  if (isLost(device)) return; // and the block with it
  const OnDevice scope(device);
  Memory::release(pointer);
}

void* Driver::allocateHost(size_t bytes) {
  if (bytes == 0) fail(PUONE_INVALID_ARGUMENT, "bytes is 0");
  use(current_device);
  const OnDevice scope(current_device);
  return memory_.allocateHost(bytes);
}

void Driver::releaseHost(void* pointer) {
  memory_.retireHost(pointer);
  for (int32_t device = 0; device < count(); ++device) finish(device);
  Memory::releaseHost(pointer);
}

puone_pointer_attributes Driver::attributes(const void* pointer) const {
  return isUsed() ? memory_.attributes(pointer)
                  : puone_pointer_attributes{PUONE_MEMORY_UNREGISTERED, -1, nullptr, 0};
}

void Driver::checkCopy(
    const void* to, const void* from, size_t bytes, puone_memcpy_kind kind) const {
  if (kind < PUONE_MEMCPY_HOST_TO_HOST || kind > PUONE_MEMCPY_DEVICE_TO_DEVICE) {
    fail(PUONE_INVALID_ARGUMENT, "%d is not a puone_memcpy_kind", static_cast<int>(kind));
  }
  const auto check = [&](const char* what, const void* pointer, bool device) {
    if (device) return checkAlive(memory_.checkDevice(what, pointer, bytes));
    memory_.checkHost(what, pointer, bytes);
  };
  check("dst", to, (kind & 1) != 0);
  check("src", from, (kind & 2) != 0);
  const auto a = reinterpret_cast<uintptr_t>(to);
  const auto b = reinterpret_cast<uintptr_t>(from);
  if (a - b < bytes || b - a < bytes) {
    fail(PUONE_INVALID_ARGUMENT, "the ranges %p and %p of %zu bytes overlap", to, from, bytes);
  }
}

void Driver::copy(
    void* to, const void* from, size_t bytes, puone_memcpy_kind kind, puone_stream handle) {
  if (bytes == 0) {
    stream(handle);
    return;
  }
  checkCopy(to, from, bytes, kind);
  const Work work{handle, PUONE_TRACE_COPY, "memcpy_async", bytes};
  if (kind == PUONE_MEMCPY_HOST_TO_HOST) { // not a thing that CUDA does in stream order
    submitHostCall(work, [=] { std::memcpy(to, from, bytes); });
    return;
  }
  submit(work, [=](const Target& target) {
    // The two enumerations have the same values.
    check(
        "cudaMemcpyAsync",
        cudaMemcpyAsync(to, from, bytes, static_cast<cudaMemcpyKind>(kind), target.stream));
  });
}

void Driver::set(void* to, int32_t value, size_t bytes, puone_stream handle) {
  if (bytes == 0) {
    stream(handle);
    return;
  }
  checkAlive(memory_.checkDevice("dst", to, bytes));
  submit({handle, PUONE_TRACE_FILL, "memset_async", bytes}, [=](const Target& target) {
    check("cudaMemsetAsync", cudaMemsetAsync(to, value & 0xff, bytes, target.stream));
  });
}

// ---- stream ----

std::shared_ptr<Stream> Driver::stream(puone_stream handle) {
  const std::lock_guard guard(mutex_);
  return streams_.get(handle);
}

template <class Queue>
void Driver::submit(const Work& work, const Queue& queue) {
  const std::shared_ptr<Stream> to = stream(work.stream);
  checkAlive(to->device.index);
  const OnDevice scope(to->device.index);
  cudaStream_t native = to->native.get();
  if (Graph* graph = captures_.of(native)) {
    queue(Target{to->device, native, graph->cell, graph});
    return;
  }
  tracer_.record({work.kind, work.name, work.bytes, work.stream, to->device, native}, [&] {
    queue(Target{to->device, native, to->native.cell(), nullptr});
  });
}

void Driver::submitHostCall(const Work& work, std::function<void()> function) {
  submit(work, [&](const Target& target) {
    auto call = std::make_unique<HostCall>(std::move(function), target.cell);
    if (target.graph == nullptr) {
      queueOnce(target.stream, std::move(call));
    } else {
      queueKept(target.stream, target.graph->keep(std::move(call)));
    }
  });
}

puone_stream Driver::createStream(int32_t priority) {
  Device& device = use(current_device);
  const OnDevice scope(current_device);
  int least = 0;
  int greatest = 0;
  check("cudaDeviceGetStreamPriorityRange", cudaDeviceGetStreamPriorityRange(&least, &greatest));
  auto stream = std::make_shared<Stream>(device, std::clamp(priority, greatest, least));
  const std::lock_guard guard(mutex_);
  return static_cast<puone_stream>(streams_.add(std::move(stream)));
}

void Driver::destroyStream(puone_stream handle) {
  const std::shared_ptr<Stream> last = stream(handle);
  captures_.refuse(last->native.get(), "stream_destroy");
  const std::lock_guard guard(mutex_);
  streams_.remove(handle);
}

puone_status Driver::queryStream(puone_stream handle) {
  const std::shared_ptr<Stream> of = stream(handle);
  checkAlive(of->device.index);
  captures_.refuse(of->native.get(), "stream_query");
  const OnDevice scope(of->device.index);
  const Ticket until = faults_.latest();
  if (!isDone("cudaStreamQuery", cudaStreamQuery(of->native.get()))) return PUONE_NOT_READY;
  report(of->native, until);
  return PUONE_OK;
}

void Driver::synchronizeStream(puone_stream handle) {
  const std::shared_ptr<Stream> of = stream(handle);
  checkAlive(of->device.index);
  captures_.refuse(of->native.get(), "stream_synchronize");
  const OnDevice scope(of->device.index);
  const Ticket until = faults_.latest();
  check("cudaStreamSynchronize", cudaStreamSynchronize(of->native.get()));
  report(of->native, until);
}

void Driver::waitEvent(puone_stream stream_handle, puone_event event_handle) {
  const std::shared_ptr<Stream> waiting = stream(stream_handle);
  checkAlive(waiting->device.index);
  const OnDevice scope(waiting->device.index);
  nativeWaitEvent(waiting->native.get(), event_handle);
}

void Driver::nativeWaitEvent(cudaStream_t native, puone_event event_handle) {
  const std::shared_ptr<Event> on = event(event_handle);
  const std::lock_guard guard(on->mutex);
  if (!on->last) return;
  check("cudaStreamWaitEvent", cudaStreamWaitEvent(native, on->native.get(), 0));
}

void Driver::hostFunction(puone_stream handle, puone_host_func function, void* user_data) {
  if (function == nullptr) fail(PUONE_INVALID_ARGUMENT, "fn is NULL");
  submitHostCall(
      {handle, PUONE_TRACE_HOST_FUNC, "stream_host_func", 0}, [=] { function(user_data); });
}

void* Driver::nativeStream(puone_stream handle) {
  const std::shared_ptr<Stream> of = stream(handle);
  checkAlive(of->device.index);
  return of->native.get();
}

// ---- event ----

std::shared_ptr<Event> Driver::event(puone_event handle) {
  const std::lock_guard guard(mutex_);
  return events_.get(handle);
}

puone_event Driver::createEvent(uint32_t flags) {
  if ((flags & ~kEventFlags) != 0) fail(PUONE_INVALID_ARGUMENT, "unknown event flags 0x%x", flags);
  Device& device = use(current_device);
  const OnDevice scope(current_device);
  auto event = std::make_shared<Event>(current_device, flags, device.events);
  const std::lock_guard guard(mutex_);
  return static_cast<puone_event>(events_.add(std::move(event)));
}

void Driver::destroyEvent(puone_event handle) {
  std::shared_ptr<Event> last; // destroyed after the lock is released
  const std::lock_guard guard(mutex_);
  last = events_.remove(handle);
}

void Driver::record(puone_event event_handle, puone_stream stream_handle) {
  const std::shared_ptr<Event> recorded = event(event_handle);
  const std::shared_ptr<Stream> at = stream(stream_handle);
  if (recorded->device != at->device.index) {
    fail(
        PUONE_INVALID_ARGUMENT,
        "the event is of puone:%d, the stream of puone:%d",
        recorded->device,
        at->device.index);
  }
  checkAlive(recorded->device);
  const OnDevice scope(recorded->device);
  const bool captured = captures_.of(at->native.get()) != nullptr;
  const std::lock_guard guard(recorded->mutex);
  check("cudaEventRecord", cudaEventRecord(recorded->native.get(), at->native.get()));
  recorded->last = Record{&at->native, faults_.latest(), captured};
}

/// The event's last record, of which it can be said when it is done.
static std::optional<Record> lastRecord(Event& event) {
  const std::lock_guard guard(event.mutex);
  if (event.last && event.last->captured) {
    fail(PUONE_INVALID_ARGUMENT, "the event was recorded into a graph");
  }
  return event.last;
}

puone_status Driver::queryEvent(puone_event handle) {
  const std::shared_ptr<Event> of = event(handle);
  checkAlive(of->device);
  const std::optional<Record> last = lastRecord(*of);
  if (!last) return PUONE_OK;
  const OnDevice scope(of->device);
  if (!isDone("cudaEventQuery", cudaEventQuery(of->native.get()))) return PUONE_NOT_READY;
  report(*last->stream, last->until);
  return PUONE_OK;
}

void Driver::synchronizeEvent(puone_event handle) {
  const std::shared_ptr<Event> of = event(handle);
  checkAlive(of->device);
  const std::optional<Record> last = lastRecord(*of);
  if (!last) return;
  const OnDevice scope(of->device);
  check("cudaEventSynchronize", cudaEventSynchronize(of->native.get()));
  report(*last->stream, last->until);
}

puone_status Driver::elapsed(puone_event start_handle, puone_event end_handle, float* out) {
  const std::shared_ptr<Event> start = event(start_handle);
  const std::shared_ptr<Event> end = event(end_handle);
  if ((start->flags & end->flags & PUONE_EVENT_TIMING) == 0) {
    fail(PUONE_INVALID_ARGUMENT, "both events need PUONE_EVENT_TIMING");
  }
  if (!lastRecord(*start) || !lastRecord(*end)) {
    fail(PUONE_INVALID_ARGUMENT, "both events must have been recorded");
  }
  if (start->device != end->device) {
    fail(
        PUONE_INVALID_ARGUMENT,
        "the events are of puone:%d and puone:%d",
        start->device,
        end->device);
  }
  checkAlive(start->device);
  const OnDevice scope(start->device);
  float ms = 0;
  const cudaError_t native = cudaEventElapsedTime(&ms, start->native.get(), end->native.get());
  if (!isDone("cudaEventElapsedTime", native)) return PUONE_NOT_READY;
  *out = ms;
  return PUONE_OK;
}

// ---- kernel ----

puone_kernel Driver::findKernel(const char* name, puone_kernel_info* info) const {
  for (const NamedKernel& named : kernels_) {
    if (std::strcmp(named.kernel.name, name) != 0) continue;
    if (info != nullptr) {
      info->version = named.contract.version;
      info->element_types = named.contract.element_types;
    }
    return reinterpret_cast<puone_kernel>(&named);
  }
  fail(PUONE_UNSUPPORTED, "no kernel is named %.100s", name);
}

const NamedKernel& Driver::kernel(puone_kernel handle) const {
  const uintptr_t offset =
      reinterpret_cast<uintptr_t>(handle) - reinterpret_cast<uintptr_t>(kernels_.data());
  if (offset % sizeof(NamedKernel) != 0 || offset / sizeof(NamedKernel) >= kernels_.size()) {
    fail(PUONE_INVALID_ARGUMENT, "%p is not a kernel", static_cast<const void*>(handle));
  }
  return kernels_[offset / sizeof(NamedKernel)];
}

void Driver::launch(puone_kernel handle, const void* args, size_t bytes, puone_stream stream) {
  const NamedKernel& named = kernel(handle);
  if (args == nullptr) fail(PUONE_INVALID_ARGUMENT, "args is NULL");
  if (bytes != named.kernel.args_size) {
    fail(
        PUONE_INVALID_ARGUMENT,
        "%s takes %zu bytes of arguments, not %zu",
        named.name.c_str(),
        named.kernel.args_size,
        bytes);
  }
  submit({stream, PUONE_TRACE_KERNEL, named.kernel.name, 0}, [&](const Target& target) {
    CudaLaunch(named, target.device, target.stream, target.cell).run(args);
  });
}

// ---- extension "graph" ----

std::shared_ptr<Graph> Driver::graph(puone_graph handle) {
  const std::lock_guard guard(mutex_);
  return graphs_.get(handle);
}

void Driver::beginCapture(puone_stream handle) {
  const std::shared_ptr<Stream> of = stream(handle);
  checkAlive(of->device.index);
  const OnDevice scope(of->device.index);
  captures_.begin(of->native.get(), of->device.index, faults_);
}

puone_graph Driver::endCapture(puone_stream handle) {
  const std::shared_ptr<Stream> of = stream(handle);
  checkAlive(of->device.index);
  const OnDevice scope(of->device.index);
  std::shared_ptr<Graph> captured = captures_.end(of->native.get());
  const std::lock_guard guard(mutex_);
  return static_cast<puone_graph>(graphs_.add(std::move(captured)));
}

bool Driver::isCapturing(puone_stream handle) {
  return captures_.of(stream(handle)->native.get()) != nullptr;
}

void Driver::instantiate(puone_graph handle) {
  const std::shared_ptr<Graph> ready = graph(handle);
  checkAlive(ready->device);
  const OnDevice scope(ready->device);
  const std::lock_guard guard(ready->mutex);
  if (ready->executable != nullptr) return;
  check("cudaGraphInstantiate", cudaGraphInstantiate(&ready->executable, ready->graph, 0));
}

void Driver::launchGraph(puone_graph handle, puone_stream stream_handle) {
  const std::shared_ptr<Graph> launched = graph(handle);
  const std::shared_ptr<Stream> at = stream(stream_handle);
  if (launched->device != at->device.index) {
    fail(
        PUONE_INVALID_ARGUMENT,
        "the graph is of puone:%d, the stream of puone:%d",
        launched->device,
        at->device.index);
  }
  captures_.refuse(at->native.get(), "the launch of a graph");
  const std::lock_guard guard(launched->mutex);
  if (launched->executable == nullptr) {
    fail(PUONE_INVALID_ARGUMENT, "the graph has not been instantiated");
  }
  at->native.watch(std::shared_ptr<FaultCell>(launched, &launched->cell));
  submit({stream_handle, PUONE_TRACE_GRAPH, "graph.launch", 0}, [&](const Target& target) {
    check("cudaGraphLaunch", cudaGraphLaunch(launched->executable, target.stream));
  });
}

void Driver::destroyGraph(puone_graph handle) {
  std::shared_ptr<Graph> last; // destroyed after the lock is released, or with its last launch
  const std::lock_guard guard(mutex_);
  last = graphs_.remove(handle);
}

} // namespace puone::cuda
