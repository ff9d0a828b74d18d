// SPDX-License-Identifier: BSD-3-Clause
#include "runtime.h"

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "standin.h"
#include "violation.h"

namespace puone::standin {
namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

constexpr uint64_t kMaxDelayNs = 200'000;

std::mutex making;          // of the_one
Runtime* the_one = nullptr; // never destroyed: workers may outlive static objects
bool forked = false;        // a child of a process that had initialised CUDA

uint64_t now() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count());
}

void written(const void* begin, size_t bytes) {
  if (watcher != nullptr) watcher->written(begin, bytes);
}

constexpr StandinServices kServices{standinEnqueue, cudaGetDevice, written};

/// Gives the other library what it needs of this one.
void introduce(const std::string& library) {
  if (library.empty()) return;
  void* const found = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL); // for good
  if (found == nullptr) violation("PUONE_STANDIN_LIBRARY: %s", dlerror());
  void* const symbol = dlsym(found, "standinLibrary");
  if (symbol == nullptr) violation("PUONE_STANDIN_LIBRARY: %s", dlerror());
  reinterpret_cast<void (*)(const StandinServices*)>(symbol)(&kServices);
}

} // namespace

thread_local Thread calling;

void refuse(cudaError_t error) {
  throw Refusal{error};
}

Runtime& runtime() {
  const std::lock_guard guard(making);
  if (the_one == nullptr) {
    the_one = new Runtime(Options::fromEnvironment());
    introduce(the_one->options.library);
    [[maybe_unused]] static const int once = pthread_atfork(
        nullptr, nullptr, [] { forked = forked || (the_one != nullptr && the_one->initialised); });
  }
  return *the_one;
}

cudaError_t remember(cudaError_t error) {
  if (error != cudaSuccess) calling.last_error = error;
  return error;
}

cudaError_t obstacle(const char* name, Needs needs) {
  // The order matters: a forked child must not touch a lock that another thread may have held.
  if (forked) return cudaErrorInitializationError;
  if (calling.in_host_function) return cudaErrorNotPermitted;
  Runtime& all = runtime();
  const Runtime::Lock lock(all.mutex);
  if (const cudaError_t error = all.planted(name)) return error;
  if (needs == Needs::kNothing) return cudaSuccess;
  if (!all.options.driver) return cudaErrorInsufficientDriver;
  if (all.options.devices == 0) return cudaErrorNoDevice;
  all.initialised = true;
  return needs == Needs::kHealth ? all.current().sticky : cudaSuccess;
}

Runtime::Runtime(Options chosen)
    : options(std::move(chosen)),
      memory(options.devices, options.memory, options.adversarial, options.guarded),
      devices_(static_cast<size_t>(options.devices)),
      random_state_(options.seed) {}

cudaError_t Runtime::planted(const char* name) {
  for (Planted& plan : options.planted) {
    if (plan.name == name && (++plan.calls == plan.nth || plan.nth == 0)) return plan.error;
  }
  return cudaSuccess;
}

// ---- devices ----

Runtime::Device& Runtime::device(int index) {
  if (index < 0 || index >= options.devices) refuse(cudaErrorInvalidDevice);
  return devices_[static_cast<size_t>(index)];
}

Runtime::Device& Runtime::current() {
  return device(calling.device);
}

void Runtime::refuseLost(int index) {
  if (const cudaError_t sticky = device(index).sticky) refuse(sticky);
}

void Runtime::lose(int index, cudaError_t error) {
  Device& lost = device(index);
  if (lost.sticky == cudaSuccess) lost.sticky = error;
  progress.notify_all();
}

// ---- streams ----

std::shared_ptr<Stream> Runtime::stream(cudaStream_t handle) const {
  if (handle == nullptr || handle == cudaStreamLegacy || handle == cudaStreamPerThread) {
    violation("the default streams are not modelled: the driver has no use for them");
  }
  return streams.find(handle);
}

void Runtime::submit(const std::shared_ptr<Stream>& stream, Work work) {
  Stream& s = *stream;
  if (s.capture != nullptr) {
    if (s.capture->invalid) refuse(cudaErrorStreamCaptureInvalidated);
    std::vector<Graph::Node>& nodes = s.capture->graph->nodes;
    nodes.push_back({std::move(work), s.frontier});
    s.frontier = {nodes.size() - 1};
    return;
  }
  s.queue.push_back(std::move(work));
  ++s.submitted;
  busy_.insert(stream);
  if (!std::exchange(s.has_worker, true)) {
    ++workers;
    std::thread([this, stream] { serve(stream); }).detach();
  }
  s.wake.notify_one();
}

void Runtime::wait(Lock& lock, const std::shared_ptr<Stream>& stream) {
  const uint64_t target = stream->submitted;
  progress.wait(lock, [&] { return stream->completed >= target; });
}

void Runtime::waitDevice(Lock& lock, int index) {
  std::vector<std::pair<std::shared_ptr<Stream>, uint64_t>> pending;
  for (const auto& each : busy_) {
    if (each->device == index) pending.emplace_back(each, each->submitted);
  }
  progress.wait(lock, [&] {
    return std::ranges::all_of(
        pending, [&](const auto& one) { return one.first->completed >= one.second; });
  });
}

void Runtime::record(Event& event, const std::shared_ptr<Stream>& stream) {
  if (stream->capture != nullptr) {
    event.last = nullptr;
    event.capture = stream->capture;
    event.frontier = stream->frontier;
    return;
  }
  event.capture = nullptr;
  event.last = std::make_shared<Record>();
  submit(stream, {Work::Kind::kRecord, nullptr, event.last});
}

void Runtime::waitEvent(const std::shared_ptr<Stream>& stream, const Event& event) {
  if (event.capture != nullptr || stream->capture != nullptr) {
    joinCapture(stream, event);
  } else if (event.last != nullptr && !event.last->done) {
    submit(stream, {Work::Kind::kWait, nullptr, event.last});
  }
}

/// SplitMix64 (Steele, Lea and Flood, 2014): any seed is a good one.
uint64_t Runtime::random() {
  uint64_t bits = random_state_ += 0x9e3779b97f4a7c15;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

/// Does one piece of work; whether device memory is open afterwards is up to the caller.
bool Runtime::perform(Lock& lock, Stream& stream, Work& work) {
  const auto lost = [&] { return device(stream.device).sticky != cudaSuccess; };
  uint64_t delay_ns = 0;
  switch (work.kind) {
    case Work::Kind::kRecord:
      work.record->done = true;
      work.record->time_ns = now();
      return true;
    case Work::Kind::kWait:
      progress.wait(lock, [&] { return work.record->done || lost(); });
      return true;
    case Work::Kind::kBookkeeping:
      work.run();
      return true;
    case Work::Kind::kKernel:
      if (lost()) return false;
      if (const cudaError_t error = planted("kernel")) refuse(error);
      [[fallthrough]];
    case Work::Kind::kDevice:
    case Work::Kind::kHostFunction:
      if (lost()) return false;
      if (options.adversarial && random() % 4 == 0) delay_ns = random() % kMaxDelayNs;
      break;
  }
  const bool host = work.kind == Work::Kind::kHostFunction;
  lock.unlock();
  if (delay_ns > 0) std::this_thread::sleep_for(nanoseconds(delay_ns));
  calling.in_host_function = host;
  cudaError_t error = cudaSuccess;
  try {
    work.run();
  } catch (const Refusal& refusal) {
    error = refusal.error;
  }
  calling.in_host_function = false;
  lock.lock();
  if (error != cudaSuccess) refuse(error);
  return true;
}

/// The stream's thread. Device memory stays open from one piece of device work to the next, and is
/// closed before the last of them counts as complete.
void Runtime::serve(std::shared_ptr<Stream> stream) {
  const auto touchesDevice = [](const Work& work) {
    return work.kind == Work::Kind::kDevice || work.kind == Work::Kind::kKernel;
  };
  Lock lock(mutex);
  bool open = false;
  for (;;) {
    stream->wake.wait(lock, [&] { return !stream->queue.empty() || stream->destroyed; });
    if (stream->queue.empty()) break;
    Work work = std::move(stream->queue.front());
    stream->queue.pop_front();
    if (touchesDevice(work) && !std::exchange(open, true)) memory.open();
    try {
      perform(lock, *stream, work);
    } catch (const Refusal& refusal) {
      lose(stream->device, refusal.error);
    }
    const bool more = !stream->queue.empty() && touchesDevice(stream->queue.front());
    if (open && !more) {
      memory.close();
      open = false;
    }
    // A record counts together with what it records: who has waited for the event finds the stream
    // idle.
    if (work.run) {
      lock.unlock();
      work = {}; // what it owns may call back
      lock.lock();
    }
    if (++stream->completed == stream->submitted) busy_.erase(stream);
    progress.notify_all();
  }
  --workers;
  progress.notify_all();
}

} // namespace puone::standin

using namespace puone::standin;

cudaError_t standinEnqueue(cudaStream_t stream, std::function<void()> work) {
  return function("launch", Needs::kHealth, [&](Runtime& all, Runtime::Lock&) {
    const auto on = all.stream(stream);
    if (on->device != calling.device) refuse(cudaErrorInvalidResourceHandle);
    all.submit(on, {Work::Kind::kKernel, std::move(work), nullptr});
    return cudaSuccess;
  });
}

std::vector<StandinRange> standinRanges() {
  Runtime& all = runtime();
  const Runtime::Lock lock(all.mutex);
  return all.memory.ranges();
}

void standinLoseDevice(int device, cudaError_t error) {
  Runtime& all = runtime();
  const Runtime::Lock lock(all.mutex);
  all.lose(device, error);
}

StandinLive standinLive() {
  Runtime& all = runtime();
  const Runtime::Lock lock(all.mutex);
  return {
      all.streams.all().size(),
      all.events.all().size(),
      all.graphs.all().size() + all.executables.all().size(),
      all.pools.all().size(),
      all.memory.deviceBlocks(),
      all.memory.pinnedBlocks()};
}

void standinReset() {
  const std::lock_guard guard(making);
  if (the_one != nullptr) {
    Runtime::Lock lock(the_one->mutex);
    for (const auto& [handle, stream] : the_one->streams.all()) {
      stream->destroyed = true;
      stream->wake.notify_all();
    }
    the_one->progress.wait(lock, [] { return the_one->workers == 0; });
  }
  delete std::exchange(the_one, nullptr);
  calling = {};
}
