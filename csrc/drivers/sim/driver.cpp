// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/sim/driver.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "drivers/common/generated_kernel.h"
#include "drivers/common/image.h"
#include "drivers/common/image_cache.h"
#include "drivers/sim/compiler.h"
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
  TransferWork(puone_trace_kind k, size_t n, const Memory& m, Parallel& p, Body b)
      : Work(Kind::kDevice, nameOf(k), n >= kLargeTransfer, n <= kBriefTransfer),
        trace_kind(k),
        bytes(n),
        memory(m),
        parallel(p),
        body(std::move(b)) {}
  static const char* nameOf(puone_trace_kind kind) {
    return kind == PUONE_TRACE_COPY ? "memcpy_async" : "memset_async";
  }
  Description description() const override {
    return {trace_kind, name, bytes};
  }
  std::unique_ptr<Work> again() const override {
    return std::make_unique<TransferWork>(trace_kind, bytes, memory, parallel, body);
  }
  uint64_t run() override {
    SimLaunch launch(memory, parallel);
    body(launch);
    return 0;
  }
  const puone_trace_kind trace_kind;
  const size_t bytes;
  const Memory& memory;
  Parallel& parallel;
  const Body body;
};

template <class Body>
std::unique_ptr<Work> transfer(
    puone_trace_kind kind, size_t bytes, const Memory& memory, Parallel& parallel, Body body) {
  return std::make_unique<TransferWork<Body>>(kind, bytes, memory, parallel, std::move(body));
}

struct HostFunctionWork final : Work {
  HostFunctionWork(puone_host_func f, void* u)
      : Work(Kind::kHostFunction, "stream_host_func", true), function(f), user_data(u) {}
  Description description() const override {
    return {PUONE_TRACE_HOST_FUNC, name, 0};
  }
  std::unique_ptr<Work> again() const override {
    return std::make_unique<HostFunctionWork>(function, user_data);
  }
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
      const NamedKernel& k, const void* args, const Memory& m, Parallel& p) {
    const Behind behind{k.kernel.args_size};
    return std::unique_ptr<Work>(new (behind) KernelWork(k, args, m, p));
  }

  Description description() const override {
    return {PUONE_TRACE_KERNEL, kernel.name, 0};
  }
  std::unique_ptr<Work> again() const override {
    return make(named, args(), memory, parallel);
  }
  std::shared_ptr<const void> needs() const override {
    return named.generated != nullptr ? named.generated->module() : nullptr;
  }
  uint64_t run() override {
    SimLaunch launch(memory, parallel);
    if (named.generated != nullptr) named.generated->prepare(this + 1, launch);
    kernel.run(launch, args());
    launch.throwDeviceError();
    return launch.delayNs();
  }
  const void* args() const {
    return this + 1;
  }
  const NamedKernel& named;
  const kernels::Kernel& kernel;
  const Memory& memory;
  Parallel& parallel;

 private:
  KernelWork(const NamedKernel& k, const void* a, const Memory& m, Parallel& p)
      : Work(Kind::kDevice, k.name.c_str(), false),
        named(k),
        kernel(k.kernel),
        memory(m),
        parallel(p) {
    std::memcpy(static_cast<void*>(this + 1), a, kernel.args_size);
  }
};
static_assert(alignof(KernelWork) >= alignof(uint64_t), "as the argument structs are aligned");

/// The kernels of the requested instruction set, by default the best one of this processor.
const kernels::Variant& variantFor(const std::string& isa) {
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
  return *chosen;
}

} // namespace

Driver::Driver(const Options& options)
    : options_(options),
      variant_(variantFor(options.isa)),
      kernels_(withNames(variant_.kernels)),
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
        PUONE_TRACE_COPY,
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
        PUONE_TRACE_FILL,
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

/// Throws Error(INVALID_ARGUMENT) if the stream is being captured.
const std::shared_ptr<Stream>& notCaptured(
    const std::shared_ptr<Stream>& stream, const char* what) {
  if (stream->capture != nullptr) {
    fail(PUONE_INVALID_ARGUMENT, "%s is not possible while the stream is being captured", what);
  }
  return stream;
}

/// The last record of the event. Throws Error(INVALID_ARGUMENT) if that was captured.
const std::shared_ptr<Record>& lastOf(const Event& event) {
  if (event.last != nullptr && event.last->capture != 0) {
    fail(PUONE_INVALID_ARGUMENT, "the event was recorded into a graph, and never completes");
  }
  return event.last;
}

} // namespace

template <class Make>
void Driver::queue(puone_stream handle, const Make& make) {
  const std::shared_ptr<Stream>& stream = streamOf(handle);
  Lock lock = scheduler_.lock();
  scheduler_.checkAlive(stream->device);
  std::unique_ptr<Work> work = make();
  if (work == nullptr) return;
  if (stream->capture != nullptr) {
    stream->capture->add(*stream, std::move(work));
    return;
  }
  if (tracer_.on()) tracer_.add(handle, stream, *work);
  submit(stream, std::move(work));
  lock.unlock();
  scheduler_.tick();
}

void Driver::submit(const std::shared_ptr<Stream>& stream, std::unique_ptr<Work> work) {
  if (faults_.kernel_error.armed() && work->description().kind == PUONE_TRACE_KERNEL) {
    work->injected_error = faults_.kernel_error.fires();
  }
  scheduler_.submit(stream, std::move(work));
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
  notCaptured(found->second->stream, "to destroy a handle");
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
  scheduler_.tick();
  const Lock lock = scheduler_.lock();
  const Stream& stream = *notCaptured(streamOf(handle), "a query");
  scheduler_.checkAlive(stream.device);
  scheduler_.report(stream, stream.submitted);
  if (stream.state == Stream::State::kIdle) return PUONE_OK;
  scheduler_.hurry();
  return PUONE_NOT_READY;
}

void Driver::synchronizeStream(puone_stream handle) {
  Lock lock = scheduler_.lock();
  const std::shared_ptr<Stream> stream = notCaptured(streamOf(handle), "a synchronisation");
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
  if (event.last == nullptr) return;
  if (event.last->capture != 0) {
    captureOf(event).wait(stream, *event.last);
    return;
  }
  notCaptured(stream, "to wait for an event that was recorded outside of the capture");
  if (event.last->done) return;
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
  if (stream->capture != nullptr) {
    stream->capture->record(*stream, *record);
  } else {
    scheduler_.submit(stream, std::make_unique<Work>(Work::Kind::kRecord, "event_record", record));
  }
  event.last = std::move(record);
}

puone_status Driver::queryEvent(puone_event handle) {
  scheduler_.tick();
  const Lock lock = scheduler_.lock();
  const Event& event = eventOf(handle);
  scheduler_.checkAlive(event.device);
  if (lastOf(event) == nullptr) return PUONE_OK;
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
  if (const std::shared_ptr<Record> record = lastOf(event)) {
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
  if (!lastOf(start)->done || !lastOf(end)->done) return PUONE_NOT_READY;
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
  queue(stream, [&] { return KernelWork::make(kernelOf(kernel), args, memory_, parallel_); });
}

// ---- graphs ----

namespace {

const std::unique_ptr<Graph>& graphOf(puone_graph handle) {
  return reinterpret_cast<const GraphHandle*>(handle)->graph;
}

} // namespace

/// The capture that the event's last record is part of.
Capture& Driver::captureOf(const Event& event) {
  const auto found = captures_.find(event.last->capture);
  if (found == captures_.end()) {
    fail(PUONE_INVALID_ARGUMENT, "the event was recorded in a capture that has ended");
  }
  return *found->second;
}

void Driver::beginCapture(puone_stream handle) {
  const Lock lock = scheduler_.lock();
  const std::shared_ptr<Stream>& stream = notCaptured(streamOf(handle), "another capture");
  scheduler_.checkAlive(stream->device);
  auto capture = std::make_unique<Capture>(stream);
  captures_.emplace(capture->id(), std::move(capture));
}

puone_graph Driver::endCapture(puone_stream handle) {
  const Lock lock = scheduler_.lock();
  const std::shared_ptr<Stream>& stream = streamOf(handle);
  if (stream->capture == nullptr || &stream->capture->origin() != stream.get()) {
    fail(PUONE_INVALID_ARGUMENT, "no capture has begun on the stream");
  }
  const auto ended = captures_.extract(stream->capture->id());
  scheduler_.checkAlive(stream->device);
  auto graph = std::make_unique<GraphHandle>(GraphHandle{ended.mapped()->end()});
  GraphHandle* const raw = graph.get();
  graphs_.emplace(raw, std::move(graph));
  return reinterpret_cast<puone_graph>(raw);
}

bool Driver::isCapturing(puone_stream handle) {
  const Lock lock = scheduler_.lock();
  return streamOf(handle)->capture != nullptr;
}

void Driver::instantiate(puone_graph handle) {
  const Lock lock = scheduler_.lock();
  graphOf(handle)->instantiated = true;
}

void Driver::destroyGraph(puone_graph handle) {
  std::unique_ptr<Graph> last; // deleted after the lock is released
  const Lock lock = scheduler_.lock();
  const auto found = graphs_.find(reinterpret_cast<const GraphHandle*>(handle));
  last = std::move(found->second->graph);
  destroyed_graphs_.add(std::move(found->second));
  graphs_.erase(found);
}

/// Queues a record on the stream and returns it.
std::shared_ptr<Record> Driver::mark(const std::shared_ptr<Stream>& stream, bool timed) {
  auto record = std::make_shared<Record>();
  record->stream = stream;
  record->timed = timed;
  scheduler_.submit(stream, std::make_unique<Work>(Work::Kind::kRecord, "graph.launch", record));
  return record;
}

void Driver::waitFor(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Record>& record) {
  if (record == nullptr || record->done) return;
  scheduler_.submit(stream, std::make_unique<Work>(Work::Kind::kWait, "graph.launch", record));
}

void Driver::launchGraph(puone_graph graph_handle, puone_stream handle) {
  Lock lock = scheduler_.lock();
  Graph& graph = *graphOf(graph_handle);
  const std::shared_ptr<Stream>& stream = notCaptured(streamOf(handle), "the launch of a graph");
  const int32_t device = graph.lanes.front().device;
  if (device != stream->device) {
    fail(
        PUONE_INVALID_ARGUMENT,
        "the graph is of puone:%d, the stream of puone:%d",
        device,
        stream->device);
  }
  if (!graph.instantiated) fail(PUONE_INVALID_ARGUMENT, "the graph has not been instantiated");
  for (const Graph::Lane& lane : graph.lanes) scheduler_.checkAlive(lane.device);

  waitFor(stream, graph.last);
  std::shared_ptr<Record> begin = mark(stream, true);
  const std::vector<std::shared_ptr<Stream>> lanes = queueSteps(graph, stream);
  graph.last = mark(stream, true);
  for (size_t lane = 1; lane < lanes.size(); ++lane) lanes[lane]->covered_by = stream->submitted;
  if (tracer_.on()) tracer_.addGraph(handle, stream, std::move(begin), graph.last);
  lock.unlock();
  scheduler_.tick();
}

/// Queues the graph's work, and returns the streams that it is queued on. Nothing runs before the
/// caller releases the lock.
std::vector<std::shared_ptr<Stream>> Driver::queueSteps(
    const Graph& graph, const std::shared_ptr<Stream>& stream) {
  std::vector<std::shared_ptr<Stream>> lanes{stream};
  for (size_t lane = 1; lane < graph.lanes.size(); ++lane) {
    lanes.push_back(std::make_shared<Stream>(graph.lanes[lane].device, graph.lanes[lane].priority));
    lanes.back()->launched_on = stream;
  }
  std::vector<std::shared_ptr<Record>> records(graph.records);
  for (const Graph::Step& step : graph.steps) {
    if (step.kind == Work::Kind::kRecord) {
      records[step.record] = mark(lanes[step.lane], false);
    } else if (step.kind == Work::Kind::kWait) {
      waitFor(lanes[step.lane], records[step.record]);
    } else {
      std::unique_ptr<Work> work = step.work->again();
      work->origin = step.work->origin;
      submit(lanes[step.lane], std::move(work));
    }
  }
  return lanes;
}

// ---- traces ----

void Driver::startTrace() {
  const Lock lock = scheduler_.lock();
  tracer_.start();
}

const std::vector<puone_trace_record>& Driver::stopTrace() {
  Lock lock = scheduler_.lock();
  return tracer_.stop(scheduler_, lock);
}

// ---- memory of several processes ----

namespace {

/// The bytes of a handle, and how a wrong one is recognised.
struct MemoryHandle {
  static constexpr uint64_t kMagic = 0x31306d656d6d6973; // "simmem01"
  uint64_t magic;
  Memory::Shared shared;
};
static_assert(sizeof(MemoryHandle) <= sizeof(puone_ipc_memory_handle));

} // namespace

puone_ipc_memory_handle Driver::exportMemory(void* block) {
  MemoryHandle named{MemoryHandle::kMagic, {}};
  Lock lock = scheduler_.lock();
  checkAlive(block);
  scheduler_.pause(lock, [&] { named.shared = memory_.share(block); });
  puone_ipc_memory_handle handle{};
  std::memcpy(handle.bytes, &named, sizeof named);
  return handle;
}

void* Driver::openMemory(int32_t device, const puone_ipc_memory_handle& handle) {
  {
    const Lock lock = scheduler_.lock();
    scheduler_.checkAlive(device);
  }
  MemoryHandle named{};
  std::memcpy(&named, handle.bytes, sizeof named);
  if (named.magic != MemoryHandle::kMagic) {
    fail(PUONE_INVALID_ARGUMENT, "the handle was not made by driver sim");
  }
  if (named.shared.device != device) {
    fail(
        PUONE_INVALID_ARGUMENT,
        "the handle names memory of puone:%d, not of puone:%d",
        named.shared.device,
        device);
  }
  return memory_.import(named.shared);
}

// ---- modules ----

namespace {

constexpr std::string_view kName = "sim"; // in images

std::string identityOf(const std::string& isa) {
  return imageIdentity(Compiler::ofMachine().identity(), Compiler::flags(isa, true));
}

/// The instruction set of a target's name.
const kernels::Variant& variantOf(std::string_view target) {
  for (const kernels::Variant& variant : kernels::variants()) {
    if (variant.isa == target) return variant;
  }
  const std::string name(target);
  fail(PUONE_INVALID_ARGUMENT, "%.100s is not a target of this driver", name.c_str());
}

Module& moduleOf(puone_module handle) {
  return *reinterpret_cast<Module*>(handle);
}

} // namespace

puone_module_target Driver::moduleTarget(int32_t /*device*/) const {
  puone_module_target target{};
  std::snprintf(target.name, sizeof target.name, "%s", variant_.isa);
  std::snprintf(target.flavour, sizeof target.flavour, "host");
  std::snprintf(target.identity, sizeof target.identity, "%s", identityOf(variant_.isa).c_str());
  return target;
}

std::string Driver::compile(const char* source, const puone_module_options& options) const {
  const std::string isa = options.target != nullptr ? variantOf(options.target).isa : variant_.isa;
  const bool contracts = (options.flags & PUONE_MODULE_UNCONTRACTED) == 0;
  return cachedImage(kName, isa, imageKey(identityOf(isa), contracts, source), [&] {
    return Compiler::ofMachine().compile(source, isa, contracts);
  });
}

puone_module Driver::loadModule(int32_t device, std::string_view bytes) {
  const Image image = unpacked(kName, bytes);
  if (!variantOf(image.target).usable) {
    const std::string target(image.target);
    fail(PUONE_INVALID_ARGUMENT, "this processor cannot run target %s", target.c_str());
  }
  auto module = std::make_unique<Module>(device, image.code);
  const Lock lock = scheduler_.lock();
  scheduler_.checkAlive(device);
  Module* const raw = module.get();
  modules_.emplace(raw, std::move(module));
  return reinterpret_cast<puone_module>(raw);
}

puone_kernel Driver::findInModule(puone_module handle, const puone_module_kernel& declared) {
  const Lock lock = scheduler_.lock();
  return moduleOf(handle).find(declared, names_);
}

void Driver::unloadModule(puone_module handle) {
  Module& module = moduleOf(handle);
  Lock lock = scheduler_.lock();
  scheduler_.waitDevice(lock, module.device());
  if (module.isInGraph()) {
    fail(PUONE_INVALID_ARGUMENT, "a graph has a launch of one of the module's kernels");
  }
  module.close();
  const auto found = modules_.find(&module);
  unloaded_modules_.add(std::move(found->second));
  modules_.erase(found);
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
