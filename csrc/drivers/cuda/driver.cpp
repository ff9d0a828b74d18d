// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/cuda/driver.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "drivers/common/error.h"
#include "drivers/common/image.h"
#include "drivers/common/image_cache.h"
#include "drivers/common/module_source.h"
#include "drivers/cuda/current_device.h"
#include "drivers/cuda/nvrtc.h"
#include "drivers/cuda/probe.h"
#include "kernels/args.h"

namespace puone::kernels::simt {
std::span<const Kernel> kernels(); // the generated registry
} // namespace puone::kernels::simt

namespace puone::cuda {
namespace {

Stream& streamOf(puone_stream handle) {
  return *reinterpret_cast<Stream*>(handle);
}
Event& eventOf(puone_event handle) {
  return *reinterpret_cast<Event*>(handle);
}
const std::shared_ptr<Graph>& graphOf(puone_graph handle) {
  return reinterpret_cast<const GraphHandle*>(handle)->graph;
}

Communicator& communicatorOf(puone_communicator handle) {
  return *reinterpret_cast<Communicator*>(handle);
}

/// The stream, ready for a call: its device is not lost, and current for CUDA.
Stream& usable(puone_stream handle) {
  Stream& stream = streamOf(handle);
  checkAlive(stream.device.index);
  makeCurrent(stream.device.index);
  return stream;
}
Event& usable(puone_event handle) {
  Event& event = eventOf(handle);
  checkAlive(event.device);
  makeCurrent(event.device);
  return event;
}

/// Refuses a native stream of another device, since work that is queued on it runs there. Only
/// from version 12.8 on do CUDA's runtime and its driver give the device of a stream.
void checkDevice([[maybe_unused]] int32_t device, [[maybe_unused]] cudaStream_t native) {
#if CUDART_VERSION >= 12080
  int actual = -1;
  const cudaError_t result = cudaStreamGetDevice(native, &actual);
  if (result == cudaErrorCallRequiresNewerDriver) {
    cudaGetLastError(); // so that the next call does not report it
    return;
  }
  check("cudaStreamGetDevice", result);
  if (actual != device) {
    fail(
        PUONE_INVALID_ARGUMENT,
        "%p is a stream of puone:%d, not of puone:%d",
        static_cast<void*>(native),
        actual,
        device);
  }
#endif
}

} // namespace

Driver::Driver() : kernels_(withNames(kernels::simt::kernels())) {}

Driver::~Driver() {
  for (const auto& device : opened_) finish(device->index);
}

// ---- device ----

int32_t Driver::count() const {
  return deviceCount();
}

Device& Driver::use(int32_t device) {
  checkAlive(device);
  Device* opened = devices_[device].load(std::memory_order_acquire);
  if (opened == nullptr) opened = &open(device);
  makeCurrent(device);
  return *opened;
}

Device& Driver::open(int32_t index) {
  const std::lock_guard guard(opening_);
  if (Device* opened = devices_[index].load(std::memory_order_relaxed)) return *opened;
  used_.store(true, std::memory_order_relaxed);
  makeCurrent(index);
  auto device = std::make_unique<Device>(index, errors_);
  // Kernels may address any memory in use, and only they know which: every pair of devices in use
  // that can reach each other does.
  for (const auto& peer : opened_) {
    if (isLost(peer->index)) continue;
    makeCurrent(index);
    enablePeerAccess(index, peer->index);
    makeCurrent(peer->index);
    enablePeerAccess(peer->index, index);
  }
  opened_.push_back(std::move(device));
  devices_[index].store(opened_.back().get(), std::memory_order_release);
  return *opened_.back();
}

cudaDeviceProp Driver::nativeProperties(int32_t device) {
  used_.store(true, std::memory_order_relaxed);
  cudaDeviceProp found;
  check("cudaGetDeviceProperties", cudaGetDeviceProperties(&found, device));
  return found;
}

puone_device_properties Driver::properties(int32_t device) {
  const cudaDeviceProp found = nativeProperties(device);
  puone_device_properties properties{};
  std::snprintf(properties.name, sizeof properties.name, "%.*s", PUONE_NAME_MAX - 1, found.name);
  properties.total_memory = found.totalGlobalMem;
  properties.major = found.major;
  properties.minor = found.minor;
  properties.multiprocessor_count = found.multiProcessorCount;
  properties.warp_size = found.warpSize;
  properties.memory_alignment = Memory::kAlignment;
  return properties;
}

void Driver::memoryInfo(int32_t device, uint64_t* free_bytes, uint64_t* total_bytes) {
  use(device);
  size_t available = 0;
  size_t total = 0;
  check("cudaMemGetInfo", cudaMemGetInfo(&available, &total));
  *free_bytes = available;
  *total_bytes = total;
}

void Driver::waitForDevice(int32_t index) {
  Device* device = devices_[index].load(std::memory_order_acquire);
  if (device == nullptr) return; // nothing was ever queued
  makeCurrent(index);
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
  checkAlive(device);
  const Ticket until = errors_.latest();
  waitForDevice(device);
  if (Device* opened = devices_[device].load(std::memory_order_acquire)) {
    report(opened->streams, until);
  }
}

void Driver::priorityRange(int32_t device, int32_t* least, int32_t* greatest) {
  use(device);
  int low = 0;
  int high = 0;
  check("cudaDeviceGetStreamPriorityRange", cudaDeviceGetStreamPriorityRange(&low, &high));
  *least = low;
  *greatest = high;
}

int32_t Driver::canAccessPeer(int32_t device, int32_t peer) {
  if (device == peer) return 1;
  used_.store(true, std::memory_order_relaxed);
  int can = 0;
  check("cudaDeviceCanAccessPeer", cudaDeviceCanAccessPeer(&can, device, peer));
  return can;
}

// ---- memory ----

void* Driver::allocate(int32_t device, size_t bytes) {
  return memory_.allocate(device, bytes, use(device).memory);
}

void Driver::release(void* pointer) {
  const int32_t device = memory_.retire(pointer);
  finish(device);
  if (isLost(device)) return; // and the block with it
  makeCurrent(device);
  Memory::release(pointer);
}

int32_t Driver::deviceForHostMemory() const {
  std::optional<int32_t> unused;
  for (int32_t device = 0; device < count(); ++device) {
    if (isLost(device)) continue;
    if (devices_[device].load(std::memory_order_acquire) != nullptr) return device;
    if (!unused) unused = device;
  }
  return unused.value_or(0);
}

void* Driver::allocateHost(size_t bytes) {
  use(deviceForHostMemory());
  return memory_.allocateHost(bytes);
}

void Driver::releaseHost(void* pointer) {
  memory_.retire(pointer);
  for (int32_t device = 0; device < count(); ++device) finish(device);
  Memory::releaseHost(pointer);
}

puone_pointer_attributes Driver::attributes(const void* pointer) const {
  return isUsed() ? memory_.attributes(pointer)
                  : puone_pointer_attributes{0, PUONE_MEMORY_UNREGISTERED, -1, 0, nullptr, 0};
}

void Driver::copy(
    void* to, const void* from, size_t bytes, puone_memcpy_kind kind, puone_stream handle) {
  if (bytes == 0) return;
  const Work work{handle, PUONE_TRACE_COPY, "memcpy_async", bytes};
  if (kind == PUONE_MEMCPY_HOST_TO_HOST) { // CUDA does not do it in stream order
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
  if (bytes == 0) return;
  submit({handle, PUONE_TRACE_FILL, "memset_async", bytes}, [=](const Target& target) {
    check("cudaMemsetAsync", cudaMemsetAsync(to, value & 0xff, bytes, target.stream));
  });
}

// ---- stream ----

template <class Queue>
void Driver::submit(const Work& work, const Queue& queue) {
  Stream& to = usable(work.stream);
  cudaStream_t native = to.native.get();
  if (Graph* graph = captures_.of(native)) {
    queue(Target{to.device, native, graph->cell, graph});
    return;
  }
  tracer_.record({work.kind, work.name, work.bytes, work.stream, to.device, native}, [&] {
    queue(Target{to.device, native, to.native.cell(), nullptr});
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

puone_stream Driver::createStream(int32_t device, int32_t priority) {
  Device& on = use(device);
  int least = 0;
  int greatest = 0;
  check("cudaDeviceGetStreamPriorityRange", cudaDeviceGetStreamPriorityRange(&least, &greatest));
  NativeStream& native = on.streams.take(std::clamp(priority, greatest, least));
  return reinterpret_cast<puone_stream>(streams_.add(on, native));
}

puone_stream Driver::wrapStream(int32_t device, void* native) {
  Device& on = use(device);
  const auto stream = static_cast<cudaStream_t>(native);
  checkDevice(device, stream);
  return reinterpret_cast<puone_stream>(streams_.add(on, on.streams.wrap(stream)));
}

void Driver::destroyStream(puone_stream handle) {
  Stream& stream = streamOf(handle);
  captures_.refuse(stream.native.get(), "stream_destroy");
  streams_.remove(&stream);
}

puone_status Driver::queryStream(puone_stream handle) {
  Stream& of = usable(handle);
  captures_.refuse(of.native.get(), "stream_query");
  const Ticket until = errors_.latest();
  if (!isDone("cudaStreamQuery", cudaStreamQuery(of.native.get()))) return PUONE_NOT_READY;
  report(of.native, until);
  return PUONE_OK;
}

void Driver::synchronizeStream(puone_stream handle) {
  Stream& of = usable(handle);
  captures_.refuse(of.native.get(), "stream_synchronize");
  const Ticket until = errors_.latest();
  check("cudaStreamSynchronize", cudaStreamSynchronize(of.native.get()));
  report(of.native, until);
}

void Driver::waitEvent(puone_stream stream_handle, puone_event event_handle) {
  nativeWaitEvent(usable(stream_handle).native.get(), event_handle);
}

void Driver::nativeWaitEvent(cudaStream_t native, puone_event event_handle) {
  Event& on = eventOf(event_handle);
  const std::lock_guard guard(on.mutex);
  if (!on.last) return;
  check("cudaStreamWaitEvent", cudaStreamWaitEvent(native, on.native.get(), 0));
}

void Driver::hostFunction(puone_stream handle, puone_host_func function, void* user_data) {
  submitHostCall(
      {handle, PUONE_TRACE_HOST_FUNC, "stream_host_func", 0}, [=] { function(user_data); });
}

void* Driver::nativeStream(puone_stream handle) {
  Stream& of = usable(handle);
  return of.native.get();
}

// ---- event ----

puone_event Driver::createEvent(int32_t device, uint32_t flags) {
  return reinterpret_cast<puone_event>(events_.add(device, flags, use(device).events));
}

void Driver::destroyEvent(puone_event handle) {
  events_.remove(&eventOf(handle));
}

void Driver::record(puone_event event_handle, puone_stream stream_handle) {
  Event& recorded = eventOf(event_handle);
  Stream& at = usable(stream_handle);
  const bool captured = captures_.of(at.native.get()) != nullptr;
  const std::lock_guard guard(recorded.mutex);
  check("cudaEventRecord", cudaEventRecord(recorded.native.get(), at.native.get()));
  recorded.last = Record{&at.native, errors_.latest(), captured};
}

/// The event's last record, unless it is part of a graph, which says nothing about when it is done.
static std::optional<Record> lastRecord(Event& event) {
  const std::lock_guard guard(event.mutex);
  if (event.last && event.last->captured) {
    fail(PUONE_INVALID_ARGUMENT, "the event was recorded into a graph");
  }
  return event.last;
}

puone_status Driver::queryEvent(puone_event handle) {
  Event& of = usable(handle);
  const std::optional<Record> last = lastRecord(of);
  if (!last) return PUONE_OK;
  if (!isDone("cudaEventQuery", cudaEventQuery(of.native.get()))) return PUONE_NOT_READY;
  report(*last->stream, last->until);
  return PUONE_OK;
}

void Driver::synchronizeEvent(puone_event handle) {
  Event& of = usable(handle);
  const std::optional<Record> last = lastRecord(of);
  if (!last) return;
  check("cudaEventSynchronize", cudaEventSynchronize(of.native.get()));
  report(*last->stream, last->until);
}

puone_status Driver::elapsed(puone_event start, puone_event end, float* out) {
  lastRecord(eventOf(start));
  lastRecord(eventOf(end));
  cudaEvent_t from = usable(start).native.get();
  float ms = 0;
  const cudaError_t native = cudaEventElapsedTime(&ms, from, eventOf(end).native.get());
  if (!isDone("cudaEventElapsedTime", native)) return PUONE_NOT_READY;
  *out = ms;
  return PUONE_OK;
}

// ---- kernel ----

bool Driver::hasKernels() {
  return !kernels::simt::kernels().empty();
}

puone_kernel Driver::findKernel(const char* name, puone_kernel_info* info) const {
  return puone::findKernel(kernels_, name, info);
}

void Driver::launch(
    puone_kernel kernel,
    const void* args,
    puone_stream stream,
    const puone_launch_context* context) {
  const NamedKernel& named = kernelOf(kernel);
  submit({stream, PUONE_TRACE_KERNEL, named.kernel.name, 0}, [&](const Target& target) {
    if (target.graph != nullptr && named.generated != nullptr) {
      target.graph->keep(named.generated->module());
    }
    CudaLaunch(named, target.device, target.stream, target.cell, context).run(args);
  });
}

// ---- extension "module" ----

namespace {

constexpr std::string_view kName = "cuda"; // in images

Module& moduleOf(puone_module handle) {
  return *reinterpret_cast<Module*>(handle);
}

std::string identityOf(const std::string& target) {
  return imageIdentity(Nvrtc::ofMachine().identity(), compilerOptions(target, true));
}

} // namespace

puone_module_target Driver::moduleTarget(int32_t device) {
  std::string name = kUsualTarget;
  if (device != -1) {
    const cudaDeviceProp found = nativeProperties(device);
    name = targetName(found.major, found.minor);
  }
  puone_module_target target{};
  std::snprintf(target.name, sizeof target.name, "%s", name.c_str());
  std::snprintf(target.flavour, sizeof target.flavour, "simt");
  std::snprintf(target.identity, sizeof target.identity, "%s", identityOf(name).c_str());
  return target;
}

std::string Driver::compile(const char* source, const puone_module_options& options) const {
  const std::string target = options.target != nullptr ? options.target : kUsualTarget;
  const bool contracts = (options.flags & PUONE_MODULE_UNCONTRACTED) == 0;
  const std::vector<std::string> words = compilerOptions(target, contracts);
  return cachedImage(kName, target, imageKey(identityOf(target), contracts, source), [&] {
    return Nvrtc::ofMachine().compiled(inDialect(source), words);
  });
}

puone_module Driver::loadModule(int32_t device, std::string_view bytes) {
  const Image image = unpacked(kName, bytes);
  use(device);
  const cudaDeviceProp found = nativeProperties(device);
  if (!runs(found.major, found.minor, image.target)) {
    const std::string target(image.target);
    fail(
        PUONE_INVALID_ARGUMENT,
        "puone:%d, which is %s, does not run code for %s",
        device,
        targetName(found.major, found.minor).c_str(),
        target.c_str());
  }
  return reinterpret_cast<puone_module>(modules_.add(device, image.code));
}

puone_kernel Driver::findInModule(puone_module handle, const puone_module_kernel& declared) {
  use(moduleOf(handle).device);
  return moduleOf(handle).find(declared, names_);
}

void Driver::unloadModule(puone_module handle) {
  Module& module = moduleOf(handle);
  finish(module.device);
  if (module.isInGraph()) {
    fail(PUONE_INVALID_ARGUMENT, "a graph has a launch of one of the module's kernels");
  }
  makeCurrent(module.device);
  modules_.remove(&module);
}

// ---- extension "graph" ----

void Driver::beginCapture(puone_stream handle) {
  Stream& of = usable(handle);
  captures_.begin(of.native.get(), of.device.index, errors_);
}

puone_graph Driver::endCapture(puone_stream handle) {
  return reinterpret_cast<puone_graph>(graphs_.add(captures_.end(usable(handle).native.get())));
}

bool Driver::isCapturing(puone_stream handle) {
  return captures_.of(streamOf(handle).native.get()) != nullptr;
}

void Driver::instantiate(puone_graph handle) {
  Graph& ready = *graphOf(handle);
  checkAlive(ready.device);
  makeCurrent(ready.device);
  const std::lock_guard guard(ready.mutex);
  if (ready.executable != nullptr) return;
  check("cudaGraphInstantiate", cudaGraphInstantiate(&ready.executable, ready.graph, 0));
}

void Driver::launchGraph(puone_graph handle, puone_stream stream_handle) {
  const std::shared_ptr<Graph>& launched = graphOf(handle);
  Stream& at = streamOf(stream_handle);
  if (launched->device != at.device.index) {
    fail(
        PUONE_INVALID_ARGUMENT,
        "the graph is of puone:%d, the stream of puone:%d",
        launched->device,
        at.device.index);
  }
  captures_.refuse(at.native.get(), "the launch of a graph");
  const std::lock_guard guard(launched->mutex);
  if (launched->executable == nullptr) {
    fail(PUONE_INVALID_ARGUMENT, "the graph has not been instantiated");
  }
  at.native.watch(std::shared_ptr<ErrorCell>(launched, &launched->cell));
  submit({stream_handle, PUONE_TRACE_GRAPH, "graph.launch", 0}, [&](const Target& target) {
    check("cudaGraphLaunch", cudaGraphLaunch(launched->executable, target.stream));
  });
}

void Driver::destroyGraph(puone_graph handle) {
  graphOf(handle)->dropModules();
  graphs_.remove(reinterpret_cast<const GraphHandle*>(handle));
}

// ---- extension "collective" ----

namespace {

NcclType typeOf(int32_t type) {
  switch (type) {
    case PUONE_INT8:
      return NcclType::kInt8;
    case PUONE_UINT8:
      return NcclType::kUint8;
    case PUONE_INT32:
      return NcclType::kInt32;
    case PUONE_UINT32:
      return NcclType::kUint32;
    case PUONE_INT64:
      return NcclType::kInt64;
    case PUONE_UINT64:
      return NcclType::kUint64;
    case PUONE_FLOAT16:
      return NcclType::kFloat16;
    case PUONE_BFLOAT16:
      return NcclType::kBfloat16;
    case PUONE_FLOAT32:
      return NcclType::kFloat32;
    case PUONE_FLOAT64:
      return NcclType::kFloat64;
    default:
      fail(PUONE_UNSUPPORTED, "NCCL has no element type %d of puone_dtype", type);
  }
}

bool isReal(int32_t type) {
  return type >= PUONE_FLOAT16 && type <= PUONE_FLOAT64;
}

NcclReduction reductionOf(puone_collective_reduction reduction, int32_t type) {
  switch (reduction) {
    case PUONE_COLLECTIVE_SUM:
      return NcclReduction::kSum;
    case PUONE_COLLECTIVE_PRODUCT:
      return NcclReduction::kProduct;
    case PUONE_COLLECTIVE_MIN:
      return NcclReduction::kMin;
    case PUONE_COLLECTIVE_MAX:
      return NcclReduction::kMax;
    case PUONE_COLLECTIVE_AVERAGE:
      if (isReal(type)) return NcclReduction::kAverage;
      break;
  }
  fail(
      PUONE_UNSUPPORTED,
      "no reduction %d of elements of type %d",
      static_cast<int>(reduction),
      type);
}

} // namespace

const char* Driver::missingCollectives() {
  const LoadedNccl& loaded = nccl();
  return loaded.functions == nullptr ? loaded.missing.c_str() : nullptr;
}

puone_device_identity Driver::identity(int32_t device) {
  const cudaDeviceProp found = nativeProperties(device);
  puone_device_identity identity{};
  static_assert(sizeof identity.bytes == sizeof found.uuid.bytes);
  std::memcpy(identity.bytes, found.uuid.bytes, sizeof identity.bytes);
  return identity;
}

puone_collective_id Driver::createCollectiveId() {
  return newCollectiveId();
}

puone_communicator Driver::initCommunicator(
    int32_t device,
    const puone_collective_id& id,
    int32_t rank,
    int32_t size,
    uint32_t timeout_ms) {
  use(device);
  return reinterpret_cast<puone_communicator>(
      communicators_.add(device, id, rank, size, std::chrono::milliseconds(timeout_ms)));
}

void Driver::destroyCommunicator(puone_communicator handle) {
  Communicator& closed = communicatorOf(handle);
  if (!isLost(closed.device())) {
    makeCurrent(closed.device());
    closed.close();
  }
  communicators_.remove(&closed);
}

void Driver::abortCommunicator(puone_communicator handle) {
  communicatorOf(handle).abort();
}

void Driver::queryCommunicator(puone_communicator handle) {
  communicatorOf(handle).check();
}

template <class Queue>
void Driver::submitCollective(
    const char* name, puone_communicator handle, puone_stream stream, const Queue& queue) {
  Communicator& in = communicatorOf(handle);
  Stream& to = usable(stream);
  cudaStream_t native = to.native.get();
  captures_.refuse(native, name);
  const auto call = [&] {
    in.call(name, [&](const Nccl& nccl, NcclCommunicator communicator) {
      return queue(nccl, communicator, native);
    });
  };
  if (in.inGroup()) {
    in.group_stream = stream;
    call();
  } else {
    submit({stream, PUONE_TRACE_KERNEL, name, 0}, [&](const Target&) { call(); });
  }
}

void Driver::allReduce(
    puone_communicator communicator,
    const void* send,
    void* recv,
    uint64_t count,
    int32_t type,
    puone_collective_reduction reduction,
    puone_stream stream) {
  const NcclType element = typeOf(type);
  const NcclReduction op = reductionOf(reduction, type);
  submitCollective("all_reduce", communicator, stream, [=](const Nccl& nccl, auto native, auto on) {
    return nccl.allReduce(send, recv, count, element, op, native, on);
  });
}

void Driver::broadcast(
    puone_communicator communicator,
    const void* send,
    void* recv,
    uint64_t count,
    int32_t type,
    int32_t root,
    puone_stream stream) {
  const NcclType element = typeOf(type);
  submitCollective("broadcast", communicator, stream, [=](const Nccl& nccl, auto native, auto on) {
    return nccl.broadcast(send, recv, count, element, root, native, on);
  });
}

void Driver::reduce(
    puone_communicator communicator,
    const void* send,
    void* recv,
    uint64_t count,
    int32_t type,
    puone_collective_reduction reduction,
    int32_t root,
    puone_stream stream) {
  const NcclType element = typeOf(type);
  const NcclReduction op = reductionOf(reduction, type);
  submitCollective("reduce", communicator, stream, [=](const Nccl& nccl, auto native, auto on) {
    return nccl.reduce(send, recv, count, element, op, root, native, on);
  });
}

void Driver::allGather(
    puone_communicator communicator,
    const void* send,
    void* recv,
    uint64_t count,
    int32_t type,
    puone_stream stream) {
  const NcclType element = typeOf(type);
  submitCollective("all_gather", communicator, stream, [=](const Nccl& nccl, auto native, auto on) {
    return nccl.allGather(send, recv, count, element, native, on);
  });
}

void Driver::reduceScatter(
    puone_communicator communicator,
    const void* send,
    void* recv,
    uint64_t count,
    int32_t type,
    puone_collective_reduction reduction,
    puone_stream stream) {
  const NcclType element = typeOf(type);
  const NcclReduction op = reductionOf(reduction, type);
  submitCollective(
      "reduce_scatter", communicator, stream, [=](const Nccl& nccl, auto native, auto on) {
        return nccl.reduceScatter(send, recv, count, element, op, native, on);
      });
}

void Driver::send(
    puone_communicator communicator,
    const void* buffer,
    uint64_t count,
    int32_t type,
    int32_t peer,
    puone_stream stream) {
  const NcclType element = typeOf(type);
  submitCollective("send", communicator, stream, [=](const Nccl& nccl, auto native, auto on) {
    return nccl.send(buffer, count, element, peer, native, on);
  });
}

void Driver::receive(
    puone_communicator communicator,
    void* buffer,
    uint64_t count,
    int32_t type,
    int32_t peer,
    puone_stream stream) {
  const NcclType element = typeOf(type);
  submitCollective("recv", communicator, stream, [=](const Nccl& nccl, auto native, auto on) {
    return nccl.recv(buffer, count, element, peer, native, on);
  });
}

void Driver::beginGroup(puone_communicator handle) {
  communicatorOf(handle).beginGroup();
}

void Driver::endGroup(puone_communicator handle) {
  Communicator& in = communicatorOf(handle);
  if (in.group_stream == nullptr) { // nothing was called in it
    in.endGroup();
    return;
  }
  submit({in.group_stream, PUONE_TRACE_KERNEL, "collective.group", 0}, [&](const Target&) {
    in.endGroup();
  });
}

} // namespace puone::cuda
