// SPDX-License-Identifier: BSD-3-Clause
#include "sanitizer/layer.h"

#include <c10/util/Exception.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "hal/module.h"
#include "runtime/capture.h"
#include "runtime/device.h"
#include "runtime/device_allocator.h"
#include "runtime/driver.h"
#include "runtime/driver_table.h"
#include "runtime/extension.h"
#include "runtime/stream_lookup.h"
#include "sanitizer/call_site.h"
#include "sanitizer/module_operands.h"
#include "sanitizer/operands.h"
#include "sanitizer/sanitizer.h"

namespace puone::sanitizer {
namespace {

std::atomic<bool> enabled{false};
std::atomic<OnReport> on_report{OnReport::Warn};

// The driver's own table and its extensions, which may be missing. Set before this layer's table is
// used.
const puone_hal_api* driver = nullptr;
const puone_graph_api* graphs = nullptr;
const puone_dlpack_api* dlpack = nullptr;
const puone_module_api* modules = nullptr;

Range rangeOf(const void* pointer, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(pointer);
  return {begin, begin + bytes};
}

puone_pointer_attributes attributesOf(const void* pointer) {
  puone_pointer_attributes found{};
  found.struct_size = sizeof found;
  if (driver->pointer_attributes(pointer, &found) != PUONE_OK) found = {};
  return found;
}

/// A call that waits for work has waited for it, even if it then reports an error of that work.
bool hasWaited(puone_status status) {
  return status == PUONE_OK || status == PUONE_INTERNAL || status == PUONE_OUT_OF_MEMORY;
}

// ---- kernels ----

struct KnownKernel {
  std::string name;
  OperandsOf* operands;
  bool copies;
};

/// By the driver's handle. Written before the table is used.
std::unordered_map<puone_kernel, KnownKernel>& kernels() {
  static auto* all = new std::unordered_map<puone_kernel, KnownKernel>();
  return *all;
}

void findKernels() {
  for (const auto& [name, operands] : allKernels()) {
    puone_kernel handle = nullptr;
    const std::string text(name);
    if (driver->kernel_find(text.c_str(), nullptr, &handle) == PUONE_OK) {
      kernels()[handle] = {text, operands, text == "copy" || text == "copy_bits"};
    }
  }
}

/// What a kernel of a module was declared with, which the driver keeps; NULL for other kernels.
const puone_module_kernel* declarationOf(puone_kernel kernel) {
  const puone_module_kernel* declared = nullptr;
  const bool found = modules != nullptr && modules->declaration(kernel, &declared) == PUONE_OK;
  return found ? declared : nullptr;
}

/// Stands between the driver and the caller's callback, to see the workspace.
struct SeenContext {
  const puone_launch_context* callers;
  Operands& operands;

  static puone_status allocate(void* user, size_t bytes, void** out) {
    auto& self = *static_cast<SeenContext*>(user);
    const puone_status status = self.callers->allocate(self.callers->user, bytes, out);
    if (status == PUONE_OK) {
      self.operands.add("workspace", *out, bytes, {.writes = true, .workspace = true});
    }
    return status;
  }
};

puone_status kernelLaunch(
    puone_kernel kernel,
    const void* args,
    size_t bytes,
    puone_stream stream,
    const puone_launch_context* context) {
  Piece piece{"", callSite(), {}, false};
  const auto known = kernels().find(kernel);
  if (known != kernels().end()) {
    piece.what = "kernel " + known->second.name;
    piece.copies = known->second.copies;
    known->second.operands(args, piece.operands);
  } else if (const puone_module_kernel* declared = declarationOf(kernel)) {
    piece.what = std::string("kernel ") + declared->name;
    addDeclared(*declared, args, piece.operands);
  }
  puone_status status = PUONE_OK;
  if (context == nullptr) {
    status = driver->kernel_launch(kernel, args, bytes, stream, nullptr);
  } else {
    SeenContext seen{context, piece.operands};
    const puone_launch_context passed{
        sizeof(puone_launch_context), 0, &SeenContext::allocate, &seen};
    status = driver->kernel_launch(kernel, args, bytes, stream, &passed);
  }
  if (status != PUONE_OK) return status;
  sanitizer().queued(stream, std::move(piece));
  deliver();
  return status;
}

// ---- copies and fills ----

/// One side of a copy. Ordinary host memory is not followed: the runtime waits for its copies.
void addSide(
    Operands& operands, const char* name, const void* at, size_t bytes, bool host, Flags flags) {
  if (host) {
    const puone_pointer_attributes block = attributesOf(at);
    if (block.kind != PUONE_MEMORY_HOST) return;
    sanitizer().pinned(rangeOf(block.base, block.size));
  }
  operands.add(name, at, bytes, flags);
}

bool isCaptured(puone_stream stream) {
  int32_t captured = 0;
  if (graphs != nullptr) graphs->is_capturing(stream, &captured);
  return captured != 0;
}

/// Delivers what was found of a copy that uses host memory: an exception lets its caller free that
/// memory, so that the copy has to be complete before.
puone_status deliverOfHostCopy(puone_stream stream) {
  const bool raises = sanitizer().hasFindings() && on_report.load() == OnReport::Raise;
  if (C10_UNLIKELY(raises && !isCaptured(stream))) {
    const puone_status status = driver->stream_synchronize(stream);
    if (hasWaited(status)) sanitizer().hostWaitsForStream(stream);
    if (status != PUONE_OK) return status; // what was found is delivered with the next call
  }
  deliver();
  return PUONE_OK;
}

puone_status memcpyAsync(
    void* dst, const void* src, size_t bytes, puone_memcpy_kind kind, puone_stream stream) {
  Piece piece{"memcpy_async", callSite(), {}, false};
  const puone_status status = driver->memcpy_async(dst, src, bytes, kind, stream);
  if (status != PUONE_OK || bytes == 0) return status;
  const bool to_host = (kind & 1) == 0;
  const bool from_host = (kind & 2) == 0;
  addSide(piece.operands, "dst", dst, bytes, to_host, {.writes = true});
  // A copy to the host may carry bytes between the elements of a tensor.
  addSide(piece.operands, "src", src, bytes, from_host, {.reads = true, .partial = to_host});
  piece.copies = !to_host && !from_host;
  sanitizer().queued(stream, std::move(piece));
  if (to_host || from_host) return deliverOfHostCopy(stream);
  deliver();
  return status;
}

puone_status memsetAsync(void* dst, int32_t value, size_t bytes, puone_stream stream) {
  Piece piece{"memset_async", callSite(), {}, false};
  const puone_status status = driver->memset_async(dst, value, bytes, stream);
  if (status != PUONE_OK || bytes == 0) return status;
  piece.operands.add("dst", dst, bytes, {.writes = true});
  sanitizer().queued(stream, std::move(piece));
  deliver();
  return status;
}

// ---- host functions ----

struct HostFunction {
  puone_host_func function;
  void* user_data;
  Moment moment;

  static void run(void* self) {
    const std::unique_ptr<HostFunction> mine(static_cast<HostFunction*>(self));
    const InHostFunction inside(mine->moment);
    mine->function(mine->user_data);
  }
};

puone_status streamHostFunc(puone_stream stream, puone_host_func function, void* user_data) {
  if (function == nullptr || isCaptured(stream)) { // captured, it may run any number of times
    return driver->stream_host_func(stream, function, user_data);
  }
  auto mine = std::make_unique<HostFunction>(
      HostFunction{function, user_data, sanitizer().hostFunctionQueued(stream)});
  const puone_status status = driver->stream_host_func(stream, &HostFunction::run, mine.get());
  // The driver has it, and drops it unrun only if the stream fails: then these bytes are lost.
  if (status == PUONE_OK) mine.release();
  return status;
}

// ---- order ----

puone_status eventRecord(puone_event event, puone_stream stream) {
  const puone_status status = driver->event_record(event, stream);
  if (status == PUONE_OK) sanitizer().recorded(event, stream);
  return status;
}

puone_status streamWaitEvent(puone_stream stream, puone_event event) {
  const puone_status status = driver->stream_wait_event(stream, event);
  if (status == PUONE_OK) sanitizer().waits(stream, event);
  return status;
}

puone_status streamQuery(puone_stream stream) {
  const puone_status status = driver->stream_query(stream);
  if (status == PUONE_OK) sanitizer().hostWaitsForStream(stream);
  return status;
}

puone_status streamSynchronize(puone_stream stream) {
  const puone_status status = driver->stream_synchronize(stream);
  if (hasWaited(status)) sanitizer().hostWaitsForStream(stream);
  return status;
}

puone_status streamDestroy(puone_stream stream) {
  const puone_status status = driver->stream_destroy(stream);
  if (status == PUONE_OK) sanitizer().destroyed(stream);
  return status;
}

puone_status eventQuery(puone_event event) {
  const puone_status status = driver->event_query(event);
  if (status == PUONE_OK) sanitizer().hostWaitsForEvent(event);
  return status;
}

puone_status eventSynchronize(puone_event event) {
  const puone_status status = driver->event_synchronize(event);
  if (hasWaited(status)) sanitizer().hostWaitsForEvent(event);
  return status;
}

puone_status eventElapsedMs(puone_event start, puone_event end, float* out) {
  const puone_status status = driver->event_elapsed_ms(start, end, out);
  if (status == PUONE_OK) {
    sanitizer().hostWaitsForEvent(start);
    sanitizer().hostWaitsForEvent(end);
  }
  return status;
}

puone_status eventDestroy(puone_event event) {
  const puone_status status = driver->event_destroy(event);
  if (status == PUONE_OK) sanitizer().destroyed(event);
  return status;
}

puone_status deviceSynchronize(int32_t device) {
  const puone_status status = driver->device_synchronize(device);
  if (hasWaited(status)) sanitizer().hostWaitsForDevice(device);
  if (status == PUONE_OK) deliver(); // what the host did, before the program goes on to other work
  return status;
}

// ---- memory; tensors come and go in the caching allocator ----

puone_status freeDevice(void* pointer) {
  const puone_pointer_attributes block = attributesOf(pointer);
  const puone_status status = driver->free(pointer);
  if (status == PUONE_OK && pointer != nullptr) {
    sanitizer().hostWaitsForDevice(block.device);
    sanitizer().released(rangeOf(block.base, block.size));
  }
  return status;
}

puone_status hostMalloc(size_t bytes, void** out) {
  const puone_status status = driver->host_malloc(bytes, out);
  if (status == PUONE_OK) sanitizer().pinned(rangeOf(*out, bytes));
  return status;
}

puone_status hostFree(void* pointer) {
  const puone_pointer_attributes block = attributesOf(pointer);
  const puone_status status = driver->host_free(pointer);
  if (status == PUONE_OK && pointer != nullptr) {
    sanitizer().hostWaitsForDevice(-1);
    sanitizer().released(rangeOf(block.base, block.size));
  }
  return status;
}

/// The allocator's locks are held, so no stack can be gathered here.
void trackMemory(const c10::CachingDeviceAllocator::TraceEntry& entry) {
  if (entry.action_ == c10::CachingDeviceAllocator::TraceEntry::ALLOC && isEnabled()) {
    const auto begin = static_cast<uintptr_t>(entry.addr_);
    sanitizer().allocated({begin, begin + entry.size_}, operatorSite());
  }
}

// ---- extension "graph" ----

puone_status captureBegin(puone_stream stream) {
  const puone_status status = graphs->capture_begin(stream);
  if (status == PUONE_OK) sanitizer().captureBegins(stream);
  return status;
}

puone_status captureEnd(puone_stream stream, puone_graph* out) {
  const puone_status status = graphs->capture_end(stream, out);
  sanitizer().captureEnds(stream, status == PUONE_OK ? *out : nullptr);
  return status;
}

puone_status launchGraph(puone_graph graph, puone_stream stream) {
  const puone_status status = graphs->launch(graph, stream);
  if (status != PUONE_OK) return status;
  if (sanitizer().launched(graph, stream) == Sanitizer::Launch::FirstUnknown) {
    TORCH_WARN(
        "puone sanitizer: a graph is launched that was captured before watching began: its work is "
        "not followed; capture it while watching");
  }
  deliver();
  return status;
}

puone_status destroyGraph(puone_graph graph) {
  const puone_status status = graphs->destroy(graph);
  if (status == PUONE_OK) sanitizer().destroyed(graph);
  return status;
}

const puone_graph_api& graphTable() {
  static const puone_graph_api table = [] {
    puone_graph_api copy = *graphs;
    copy.capture_begin = captureBegin;
    copy.capture_end = captureEnd;
    copy.launch = launchGraph;
    copy.destroy = destroyGraph;
    return copy;
  }();
  return table;
}

// ---- extension "dlpack" ----

/// Of the streams of other libraries nothing is known: they have no work here.
puone_status nativeStreamWaitEvent(void* native, puone_event event) {
  const puone_status status = dlpack->native_stream_wait_event(native, event);
  if (status != PUONE_OK) return status;
  for (c10::DeviceIndex device = 0; device < deviceCount(); ++device) {
    if (const auto stream = findNativeStream(native, device)) {
      sanitizer().waits(stream->handle(), event);
    }
  }
  return status;
}

const puone_dlpack_api& dlpackTable() {
  static const puone_dlpack_api table = [] {
    puone_dlpack_api copy = *dlpack;
    copy.native_stream_wait_event = nativeStreamWaitEvent;
    return copy;
  }();
  return table;
}

// ---- the table ----

puone_status getExtension(const char* name, uint32_t min_version, const void** out) {
  const puone_status status = driver->get_extension(name, min_version, out);
  if (status != PUONE_OK) return status;
  if (std::string_view(name) == PUONE_GRAPH_EXTENSION) *out = &graphTable();
  if (std::string_view(name) == PUONE_DLPACK_EXTENSION) *out = &dlpackTable();
  return status;
}

const puone_hal_api* watchingTable(const puone_hal_api& /*under*/) {
  static const puone_hal_api table = [] {
    driver = &tableUnder(TableLayer::Sanitizer);
    graphs = findExtension<puone_graph_api>(*driver, PUONE_GRAPH_EXTENSION, PUONE_GRAPH_VERSION);
    dlpack = findExtension<puone_dlpack_api>(*driver, PUONE_DLPACK_EXTENSION, PUONE_DLPACK_VERSION);
    modules =
        findExtension<puone_module_api>(*driver, PUONE_MODULE_EXTENSION, PUONE_MODULE_VERSION);
    findKernels();
    attachAllocatorTraceTracker(trackMemory);
    puone_hal_api copy = *driver;
    copy.device_synchronize = deviceSynchronize;
    copy.free = freeDevice;
    copy.host_malloc = hostMalloc;
    copy.host_free = hostFree;
    copy.memcpy_async = memcpyAsync;
    copy.memset_async = memsetAsync;
    copy.stream_destroy = streamDestroy;
    copy.stream_query = streamQuery;
    copy.stream_synchronize = streamSynchronize;
    copy.stream_wait_event = streamWaitEvent;
    copy.stream_host_func = streamHostFunc;
    copy.event_destroy = eventDestroy;
    copy.event_record = eventRecord;
    copy.event_query = eventQuery;
    copy.event_synchronize = eventSynchronize;
    copy.event_elapsed_ms = eventElapsedMs;
    copy.kernel_launch = kernelLaunch;
    copy.get_extension = getExtension;
    return copy;
  }();
  return &table;
}

// ---- reports ----

/// Reports, each pair of places once.
struct Collection {
  std::vector<Report> reports;
  std::set<std::string> known;

  bool add(const std::string& key, const Report& report) {
    const bool is_new = known.insert(key).second;
    if (is_new) reports.push_back(report);
    return is_new;
  }
};

struct Kept {
  std::mutex mutex;
  Collection all;                        // since clearReports()
  std::map<uint64_t, Collection> blocks; // since beginBlock(), by its number
  uint64_t last_block = 0;
};

Kept& kept() {
  static auto* instance = new Kept();
  return *instance;
}

/// What makes two reports the same: all but the addresses. An operator may read a number of the
/// host itself and again through item(), so that it is one place whatever its argument is called.
std::string keyOf(const Report& report) {
  std::string key = nameOf(report.kind);
  for (const ReportedAccess& access : report.accesses) {
    for (const auto& part :
         {access.mode,
          access.work == kHostsWork ? "" : access.argument,
          access.work,
          access.operation,
          access.stream,
          access.stack}) {
      key += '\n' + part;
    }
  }
  return key;
}

struct Collected {
  Report report;
  bool is_new; // somewhere
};

/// Moves what was found to what is kept.
std::vector<Collected> collect() {
  std::vector<Collected> collected;
  std::vector<Report> found = sanitizer().takeReports();
  const std::lock_guard guard(kept().mutex);
  for (Report& report : found) {
    const std::string key = keyOf(report);
    bool is_new = kept().all.add(key, report);
    for (auto& [number, block] : kept().blocks) is_new |= block.add(key, report);
    collected.push_back({std::move(report), is_new});
  }
  return collected;
}

/// Each time, since the program may go on, with its next test, say. But the call behind a mistake
/// of the host raises it, which may be that test's: once.
bool isRaised(const Collected& collected) {
  return collected.is_new || collected.report.kind != Kind::HostRace;
}

} // namespace

void deliver() {
  if (C10_LIKELY(!sanitizer().hasFindings())) return;
  const std::vector<Collected> all = collect();
  switch (on_report.load()) {
    case OnReport::Collect:
      return;
    case OnReport::Warn:
      for (const Collected& each : all) {
        if (each.is_new) TORCH_WARN(each.report.text);
      }
      return;
    case OnReport::Raise:
      for (const Collected& each : all) TORCH_CHECK(!isRaised(each), each.report.text);
  }
}

void deliverFromHost() {
  if (on_report.load(std::memory_order_relaxed) != OnReport::Raise) deliver();
}

void enable(OnReport wanted) {
  on_report.store(wanted);
  if (isEnabled()) return;
  TORCH_CHECK(
      !isCaptureUnderway(),
      "puone: the sanitizer cannot begin to watch while a graph is being captured: turn it on "
      "before "
      "the capture");
  for (c10::DeviceIndex device = 0; device < deviceCount(); ++device) {
    if (hasPrimaryContext(device)) synchronizeDevice(device);
  }
  sanitizer().reset();
  observeOperators();
  useTable(TableLayer::Sanitizer, &watchingTable);
  // Last, because it lets allocations be seen: the writes behind them must be seen, too.
  enabled.store(true);
}

void disable() {
  if (!enabled.exchange(false)) return;
  useTable(TableLayer::Sanitizer, nullptr);
  ignoreOperators();
  collect();
  sanitizer().reset();
}

bool isEnabled() noexcept {
  return enabled.load(std::memory_order_acquire);
}

std::optional<OnReport> reaction() noexcept {
  return isEnabled() ? std::optional(on_report.load()) : std::nullopt;
}

std::vector<Report> reports() {
  collect();
  const std::lock_guard guard(kept().mutex);
  return kept().all.reports;
}

uint64_t beginBlock() {
  collect();
  const std::lock_guard guard(kept().mutex);
  kept().blocks[++kept().last_block];
  return kept().last_block;
}

std::vector<Report> endBlock(uint64_t number) {
  collect();
  const std::lock_guard guard(kept().mutex);
  const auto block = kept().blocks.extract(number);
  return block.empty() ? std::vector<Report>() : block.mapped().reports;
}

void clearReports() {
  collect();
  const std::lock_guard guard(kept().mutex);
  kept().all = {};
}

void neverRecorded(const Stream* waiting) {
  if (!isEnabled()) return;
  std::string name = "the host";
  if (waiting != nullptr) {
    const std::string which =
        waiting->id() == 0 ? "the default stream" : c10::str("stream ", waiting->id());
    name = c10::str(which, " of ", waiting->device());
  }
  sanitizer().neverRecorded(name, callSite());
  deliver();
}

} // namespace puone::sanitizer
