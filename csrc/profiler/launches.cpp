// SPDX-License-Identifier: BSD-3-Clause
#include "profiler/launches.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include "profiler/clock.h"
#include "profiler/trace.h"
#include "runtime/driver.h"
#include "runtime/driver_table.h"

namespace puone::profiler {
namespace {

struct Observed {
  std::mutex mutex;
  std::vector<Launch> launches; // guarded by the mutex
};

Observed& observedNow() {
  // Leaked: Kineto ends a forgotten session during static destruction.
  static auto* instance = new Observed();
  return *instance;
}

std::atomic<uint64_t> observation{0};

/// What the calling thread is in. A thread that a profiler left inside of an operator begins anew
/// with the next observation.
struct Nesting {
  uint64_t observation = 0;
  std::vector<uint64_t> operations;
  std::vector<uint64_t> ranges;
};

Nesting& nesting() {
  thread_local Nesting mine;
  const uint64_t current = observation.load(std::memory_order_relaxed);
  if (mine.observation != current) mine = {.observation = current, .operations = {}, .ranges = {}};
  return mine;
}

uint64_t innermost(const std::vector<uint64_t>& ids) {
  return ids.empty() ? 0 : ids.back();
}

void leave(std::vector<uint64_t>& ids) {
  if (!ids.empty()) ids.pop_back(); // it may have been entered before the observation
}

const puone_trace_api* trace = nullptr;

/// What the runtime would use if nothing were observed.
const puone_hal_api* driver() {
  return &tableUnder(TableLayer::Observer);
}

uint64_t lastCorrelation() {
  uint64_t last = 0;
  trace->correlation(&last);
  return last;
}

int32_t threadNumber() {
  thread_local const auto number = static_cast<int32_t>(syscall(SYS_gettid));
  return number;
}

/// Makes a call that may queue work. One that fails, is captured, or has nothing to do queues none.
template <class Call>
puone_status observed(const char* entry, const Call& call) {
  const uint64_t before = lastCorrelation();
  const int64_t begin_ns = monotonicNs();
  const puone_status status = call();
  const int64_t end_ns = monotonicNs();
  if (status != PUONE_OK) return status; // whose message another call would replace
  const uint64_t correlation = lastCorrelation();
  if (correlation == before) return status;
  const Nesting& inside = nesting();
  const Launch launch{
      entry,
      correlation,
      innermost(inside.operations),
      innermost(inside.ranges),
      begin_ns,
      end_ns,
      threadNumber()};
  Observed& now = observedNow();
  const std::lock_guard guard(now.mutex);
  now.launches.push_back(launch);
  return status;
}

puone_status memcpyAsync(
    void* dst, const void* src, size_t bytes, puone_memcpy_kind kind, puone_stream stream) {
  return observed(
      "memcpy_async", [=] { return driver()->memcpy_async(dst, src, bytes, kind, stream); });
}

puone_status memsetAsync(void* dst, int32_t value, size_t bytes, puone_stream stream) {
  return observed(
      "memset_async", [=] { return driver()->memset_async(dst, value, bytes, stream); });
}

puone_status hostFunction(puone_stream stream, puone_host_func function, void* user_data) {
  return observed(
      "stream_host_func", [=] { return driver()->stream_host_func(stream, function, user_data); });
}

puone_status kernelLaunch(
    puone_kernel kernel,
    const void* args,
    size_t bytes,
    puone_stream stream,
    const puone_launch_context* context) {
  return observed("kernel_launch", [=] {
    return driver()->kernel_launch(kernel, args, bytes, stream, context);
  });
}

// ---- extension "graph" ----

puone_status launchGraph(puone_graph graph, puone_stream stream) {
  const void* graphs = nullptr;
  const puone_status status =
      driver()->get_extension(PUONE_GRAPH_EXTENSION, PUONE_GRAPH_VERSION, &graphs);
  if (status != PUONE_OK) return status;
  return observed("graph.launch", [=] {
    return static_cast<const puone_graph_api*>(graphs)->launch(graph, stream);
  });
}

/// A copy of each table of graphs that is underneath, as observingTable() has of the others.
const puone_graph_api& graphTable(const puone_graph_api& under) {
  static std::mutex mutex;
  static auto* tables = new std::map<const puone_graph_api*, puone_graph_api>();
  const std::lock_guard guard(mutex);
  const auto [entry, is_new] = tables->emplace(&under, under);
  if (is_new) entry->second.launch = launchGraph;
  return entry->second;
}

puone_status getExtension(const char* name, uint32_t min_version, const void** out) {
  const puone_status status = driver()->get_extension(name, min_version, out);
  if (status == PUONE_OK && std::string_view(name) == PUONE_GRAPH_EXTENSION) {
    *out = &graphTable(*static_cast<const puone_graph_api*>(*out));
  }
  return status;
}

/// One for each table that was ever underneath: all other entries are that table's. Never freed,
/// because calls may be in it when an observation ends.
const puone_hal_api* observingTable(const puone_hal_api& under) {
  static auto* tables = new std::map<const puone_hal_api*, puone_hal_api>();
  const auto [entry, is_new] = tables->emplace(&under, under);
  if (is_new) {
    puone_hal_api& copy = entry->second;
    copy.memcpy_async = memcpyAsync;
    copy.memset_async = memsetAsync;
    copy.stream_host_func = hostFunction;
    copy.kernel_launch = kernelLaunch;
    copy.get_extension = getExtension;
  }
  return &entry->second;
}

} // namespace

void observeLaunches() {
  trace = &tracing();
  PUONE_CHECK_STATUS(trace->start(), "trace.start");
  observedLaunches();
  observation.fetch_add(1, std::memory_order_relaxed);
  useTable(TableLayer::Observer, &observingTable);
}

std::vector<Launch> observedLaunches() {
  useTable(TableLayer::Observer, nullptr);
  Observed& now = observedNow();
  const std::lock_guard guard(now.mutex);
  return std::exchange(now.launches, {});
}

void enterOperation(uint64_t id) {
  nesting().operations.push_back(id);
}

void leaveOperation() {
  leave(nesting().operations);
}

void enterRange(uint64_t id) {
  nesting().ranges.push_back(id);
}

void leaveRange() {
  leave(nesting().ranges);
}

} // namespace puone::profiler
