// SPDX-License-Identifier: BSD-3-Clause
// Tasks of a stream are swapped in pairs: the first of a pair is kept back until the second has
// been submitted, or until something asks about the stream.
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "liar.h"

namespace puone::liar {
namespace {

using Task = std::function<puone_status()>;

std::mutex mutex;
std::map<puone_stream, Task> kept_back;

Task takeKept(puone_stream stream) {
  const std::lock_guard guard(mutex);
  auto node = kept_back.extract(stream);
  return node.empty() ? Task() : std::move(node.mapped());
}

puone_status submit(puone_stream stream, Task task) {
  if (stream == nullptr) return task(); // to be refused
  Task first = takeKept(stream);
  if (!first) {
    const std::lock_guard guard(mutex);
    kept_back[stream] = std::move(task);
    return PUONE_OK;
  }
  puone_status status = task();
  first();
  return status;
}

void flush(puone_stream stream) {
  if (Task task = takeKept(stream)) task();
}

void flushAll() {
  std::map<puone_stream, Task> tasks;
  {
    const std::lock_guard guard(mutex);
    tasks.swap(kept_back);
  }
  for (auto& [stream, task] : tasks) task();
}

void swapSubmissions(puone_hal_api& table) {
  table.memcpy_async =
      [](void* dst, const void* src, size_t bytes, puone_memcpy_kind kind, puone_stream stream) {
        return submit(stream, [=] { return truth().memcpy_async(dst, src, bytes, kind, stream); });
      };
  table.memset_async = [](void* dst, int32_t value, size_t bytes, puone_stream stream) {
    return submit(stream, [=] { return truth().memset_async(dst, value, bytes, stream); });
  };
  table.stream_host_func = [](puone_stream stream, puone_host_func function, void* user_data) {
    return submit(stream, [=] { return truth().stream_host_func(stream, function, user_data); });
  };
  table.kernel_launch = [](puone_kernel kernel,
                           const void* args,
                           size_t bytes,
                           puone_stream stream,
                           const puone_launch_context* context) {
    if (args == nullptr) return truth().kernel_launch(kernel, args, bytes, stream, context);
    const auto* first = static_cast<const unsigned char*>(args);
    std::vector<unsigned char> copy(first, first + bytes); // the caller's struct dies on return
    return submit(
        stream, [=] { return truth().kernel_launch(kernel, copy.data(), bytes, stream, context); });
  };
}

void flushBeforeQuestions(puone_hal_api& table) {
  table.stream_query = [](puone_stream stream) {
    flush(stream);
    return truth().stream_query(stream);
  };
  table.stream_synchronize = [](puone_stream stream) {
    flush(stream);
    return truth().stream_synchronize(stream);
  };
  table.stream_destroy = [](puone_stream stream) {
    flush(stream);
    return truth().stream_destroy(stream);
  };
  table.stream_wait_event = [](puone_stream stream, puone_event event) {
    flush(stream);
    return truth().stream_wait_event(stream, event);
  };
  table.event_record = [](puone_event event, puone_stream stream) {
    flush(stream);
    return truth().event_record(event, stream);
  };
  table.device_synchronize = [](int32_t device) {
    flushAll();
    return truth().device_synchronize(device);
  };
}

void flushBeforeReleases(puone_hal_api& table) {
  table.free = [](void* block) {
    flushAll();
    return truth().free(block);
  };
  table.host_free = [](void* block) {
    flushAll();
    return truth().host_free(block);
  };
  table.shutdown = [] {
    flushAll();
    return truth().shutdown();
  };
}

} // namespace

void tasksRunInReverse(puone_hal_api& table) {
  swapSubmissions(table);
  flushBeforeQuestions(table);
  flushBeforeReleases(table);
}

void argumentsAreReadLate(puone_hal_api& table) {
  flushBeforeQuestions(table);
  flushBeforeReleases(table);
  table.kernel_launch = [](puone_kernel kernel,
                           const void* args,
                           size_t bytes,
                           puone_stream stream,
                           const puone_launch_context* context) {
    if (args == nullptr || stream == nullptr) {
      return truth().kernel_launch(kernel, args, bytes, stream, context);
    }
    flush(stream);
    const std::lock_guard guard(mutex);
    kept_back[stream] = [=] { return truth().kernel_launch(kernel, args, bytes, stream, context); };
    return PUONE_OK;
  };
  table.memcpy_async =
      [](void* dst, const void* src, size_t bytes, puone_memcpy_kind kind, puone_stream stream) {
        flush(stream);
        return truth().memcpy_async(dst, src, bytes, kind, stream);
      };
  table.memset_async = [](void* dst, int32_t value, size_t bytes, puone_stream stream) {
    flush(stream);
    return truth().memset_async(dst, value, bytes, stream);
  };
  table.stream_host_func = [](puone_stream stream, puone_host_func function, void* user_data) {
    flush(stream);
    return truth().stream_host_func(stream, function, user_data);
  };
}

} // namespace puone::liar
