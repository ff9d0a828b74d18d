// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/host/driver.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>
#include <utility>

#include "drivers/host/kernels.h"

namespace puone::host {
namespace {

Queue* of(puone_stream stream) {
  return reinterpret_cast<Queue*>(stream);
}

} // namespace

// ---- device ----

puone_device_properties Driver::properties(int32_t /*device*/) const {
  puone_device_properties result{};
  result.memory_alignment = Memory::kAlignment;
  std::snprintf(result.name, sizeof result.name, "host memory");
  result.total_memory = Memory::kTotal;
  result.multiprocessor_count =
      static_cast<int32_t>(std::max(1u, std::thread::hardware_concurrency()));
  result.warp_size = 1;
  return result;
}

void Driver::memoryInfo(int32_t /*device*/, uint64_t* free_bytes, uint64_t* total_bytes) const {
  *free_bytes = memory_.freeBytes();
  *total_bytes = Memory::kTotal;
}

void Driver::synchronizeDevice(int32_t /*device*/) {
  queues_.finishAll(/*report=*/true);
}

void Driver::priorityRange(int32_t /*device*/, int32_t* least, int32_t* greatest) const {
  *least = *greatest = 0;
}

int32_t Driver::canAccessPeer(int32_t device, int32_t peer) const {
  return device == peer ? 1 : 0;
}

// ---- memory ----

void* Driver::allocate(int32_t /*device*/, size_t bytes) {
  return memory_.allocate(PUONE_MEMORY_DEVICE, bytes);
}

void Driver::release(void* block) {
  queues_.finishAll(/*report=*/false);
  memory_.release(block);
}

void* Driver::allocateHost(size_t bytes) {
  return memory_.allocate(PUONE_MEMORY_HOST, bytes);
}

void Driver::releaseHost(void* block) {
  queues_.finishAll(/*report=*/false);
  memory_.release(block);
}

puone_pointer_attributes Driver::attributes(const void* address) const {
  return memory_.attributes(address);
}

void Driver::copy(
    void* to, const void* from, size_t bytes, puone_memcpy_kind /*kind*/, puone_stream stream) {
  if (bytes == 0) return;
  queues_.submit(
      of(stream), {.name = "memcpy_async", .kind = PUONE_TRACE_COPY, .bytes = bytes, .body = [=] {
                     std::memcpy(to, from, bytes);
                   }});
}

void Driver::set(void* to, int32_t value, size_t bytes, puone_stream stream) {
  if (bytes == 0) return;
  queues_.submit(
      of(stream), {.name = "memset_async", .kind = PUONE_TRACE_FILL, .bytes = bytes, .body = [=] {
                     std::memset(to, value, bytes);
                   }});
}

// ---- stream ----

puone_stream Driver::createStream(int32_t /*device*/, int32_t /*priority*/) {
  return reinterpret_cast<puone_stream>(queues_.create());
}

void Driver::destroyStream(puone_stream stream) {
  queues_.destroy(of(stream));
}

puone_status Driver::queryStream(puone_stream stream) {
  return queues_.idle(of(stream)) ? PUONE_OK : PUONE_NOT_READY;
}

void Driver::synchronizeStream(puone_stream stream) {
  queues_.finish(of(stream));
}

void Driver::waitEvent(puone_stream stream, puone_event event) {
  if (auto record = recordOf(event)) {
    queues_.submit(of(stream), {.waits_for = std::move(record)});
  }
}

void Driver::hostFunction(puone_stream stream, puone_host_func function, void* user_data) {
  queues_.submit(
      of(stream), {.name = "stream_host_func", .kind = PUONE_TRACE_HOST_FUNC, .body = [=] {
                     function(user_data);
                   }});
}

void* Driver::nativeStream(puone_stream stream) {
  return stream;
}

// ---- event ----

Event& Driver::eventOf(puone_event event) {
  return *reinterpret_cast<Event*>(event);
}

std::shared_ptr<Record> Driver::recordOf(puone_event event) const {
  const std::lock_guard guard(mutex_);
  return eventOf(event).record;
}

puone_event Driver::createEvent(int32_t /*device*/, uint32_t flags) {
  const std::lock_guard guard(mutex_);
  auto event = std::make_unique<Event>(Event{flags, nullptr});
  Event* handle = event.get();
  events_.emplace(handle, std::move(event));
  return reinterpret_cast<puone_event>(handle);
}

void Driver::destroyEvent(puone_event event) {
  const std::lock_guard guard(mutex_);
  events_.erase(&eventOf(event));
}

void Driver::record(puone_event event, puone_stream stream) {
  const std::lock_guard guard(mutex_);
  eventOf(event).record = queues_.record(of(stream));
}

puone_status Driver::queryEvent(puone_event event) {
  const auto record = recordOf(event);
  return record == nullptr || queues_.complete(record) ? PUONE_OK : PUONE_NOT_READY;
}

void Driver::synchronizeEvent(puone_event event) {
  if (const auto record = recordOf(event)) queues_.finish(record);
}

puone_status Driver::elapsed(puone_event start, puone_event end, float* out) {
  const auto first = recordOf(start);
  const auto last = recordOf(end);
  if (first == nullptr || last == nullptr) {
    fail(PUONE_INVALID_ARGUMENT, "both events must have been recorded");
  }
  if (!queues_.complete(first) || !queues_.complete(last)) return PUONE_NOT_READY;
  *out = std::chrono::duration<float, std::milli>(last->time - first->time).count();
  return PUONE_OK;
}

// ---- kernel ----

puone_kernel Driver::findKernel(const char* name, puone_kernel_info* info) const {
  for (const Kernel& kernel : kernels()) {
    if (std::strcmp(kernel.name, name) != 0) continue;
    info->version = kernel.version;
    info->element_types = kernel.element_types;
    info->args_size = kernel.args_size;
    return reinterpret_cast<puone_kernel>(&kernel);
  }
  fail(PUONE_UNSUPPORTED, "there is no kernel %.100s", name);
}

void Driver::launch(
    puone_kernel handle,
    const void* args,
    puone_stream stream,
    const puone_launch_context* /*context*/) {
  const auto& kernel = *reinterpret_cast<const Kernel*>(handle);
  const auto* begin = static_cast<const std::byte*>(args);
  std::vector<std::byte> copy(begin, begin + kernel.args_size);
  queues_.submit(
      of(stream),
      {.name = kernel.name, .kind = PUONE_TRACE_KERNEL, .body = [&kernel, copy = std::move(copy)] {
         kernel.run(copy.data());
       }});
}

// ---- trace ----

void Driver::startTrace() {
  queues_.startTrace();
}

const std::vector<puone_trace_record>& Driver::stopTrace() {
  return queues_.stopTrace();
}

// ---- life ----

void Driver::lockAll() {
  mutex_.lock();
  queues_.mutex().lock();
  memory_.mutex().lock();
}

void Driver::unlockAll() {
  memory_.mutex().unlock();
  queues_.mutex().unlock();
  mutex_.unlock();
}

} // namespace puone::host
