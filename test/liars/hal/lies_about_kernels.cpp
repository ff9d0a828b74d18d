// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>

#include "liar.h"

namespace puone::liar {
namespace {

const char* dropped_name = nullptr;
std::atomic<puone_kernel> dropped{nullptr};

// Launches of one kernel are accepted and not run.
void dropKernel(puone_hal_api& table, const char* name) {
  dropped_name = name;
  table.kernel_find = [](const char* name, puone_kernel_info* info, puone_kernel* out) {
    puone_status status = truth().kernel_find(name, info, out);
    if (status == PUONE_OK && std::string_view(name) == dropped_name) dropped = *out;
    return status;
  };
  table.kernel_launch = [](puone_kernel kernel,
                           const void* args,
                           size_t bytes,
                           puone_stream stream,
                           const puone_launch_context* context) {
    const bool drop = kernel == dropped && kernel != nullptr && args != nullptr;
    return drop && stream != nullptr ? PUONE_OK
                                     : truth().kernel_launch(kernel, args, bytes, stream, context);
  };
}

std::mutex mutex;
std::map<puone_stream, int32_t> device_of;

// Whether one of the words of the arguments is an address on another device.
bool usesAPeer(const void* args, size_t bytes, int32_t device) {
  const auto* words = static_cast<const unsigned char*>(args);
  for (size_t at = 0; at + sizeof(void*) <= bytes; at += sizeof(void*)) {
    void* word = nullptr;
    std::memcpy(&word, words + at, sizeof word);
    const puone_pointer_attributes found = attributesOf(word);
    if (found.kind == PUONE_MEMORY_DEVICE && found.device != device) return true;
  }
  return false;
}

std::atomic<int> inside{0};

// Whether no other thread submits; it looks slowly, so that threads do meet.
bool meetsNobody() {
  const bool alone = inside++ == 0;
  std::this_thread::sleep_for(std::chrono::microseconds(200));
  return alone;
}

} // namespace

void fillDoesNothing(puone_hal_api& table) {
  dropKernel(table, "fill");
}

void copyBitsDoesNothing(puone_hal_api& table) {
  dropKernel(table, "copy_bits");
}

void castsDoNothing(puone_hal_api& table) {
  dropKernel(table, "copy");
}

void delayDoesNotWait(puone_hal_api& table) {
  dropKernel(table, "delay");
}

void anyKernelIsFound(puone_hal_api& table) {
  table.kernel_find = [](const char* name, puone_kernel_info* info, puone_kernel* out) {
    puone_status status = truth().kernel_find(name, info, out);
    return status == PUONE_UNSUPPORTED ? truth().kernel_find("delay", info, out) : status;
  };
}

void kernelsAreNotDescribed(puone_hal_api& table) {
  table.kernel_find = [](const char* name, puone_kernel_info*, puone_kernel* out) {
    return truth().kernel_find(name, nullptr, out);
  };
}

void kernelSizesAreNotChecked(puone_hal_api& table) {
  table.kernel_launch = [](puone_kernel kernel,
                           const void* args,
                           size_t bytes,
                           puone_stream stream,
                           const puone_launch_context* context) {
    puone_status status = truth().kernel_launch(kernel, args, bytes, stream, context);
    const bool ignored = status == PUONE_INVALID_ARGUMENT && args != nullptr;
    return ignored && kernel != nullptr && stream != nullptr ? PUONE_OK : status;
  };
}

void kernelsRefusePeers(puone_hal_api& table) {
  table.stream_create = [](int32_t device, int32_t priority, puone_stream* out) {
    puone_status status = truth().stream_create(device, priority, out);
    const std::lock_guard guard(mutex);
    if (status == PUONE_OK) device_of[*out] = device;
    return status;
  };
  table.kernel_launch = [](puone_kernel kernel,
                           const void* args,
                           size_t bytes,
                           puone_stream stream,
                           const puone_launch_context* context) {
    const std::lock_guard guard(mutex);
    const auto at = device_of.find(stream);
    const bool refused =
        at != device_of.end() && args != nullptr && usesAPeer(args, bytes, at->second);
    return refused ? PUONE_INVALID_ARGUMENT
                   : truth().kernel_launch(kernel, args, bytes, stream, context);
  };
}

void threadsLoseWork(puone_hal_api& table) {
  table.memcpy_async =
      [](void* dst, const void* src, size_t bytes, puone_memcpy_kind kind, puone_stream stream) {
        const bool alone = meetsNobody();
        puone_status status =
            alone ? truth().memcpy_async(dst, src, bytes, kind, stream) : PUONE_OK;
        --inside;
        return status;
      };
  table.kernel_launch = [](puone_kernel kernel,
                           const void* args,
                           size_t bytes,
                           puone_stream stream,
                           const puone_launch_context* context) {
    const bool alone = meetsNobody();
    puone_status status = alone || args == nullptr
                              ? truth().kernel_launch(kernel, args, bytes, stream, context)
                              : PUONE_OK;
    --inside;
    return status;
  };
}

} // namespace puone::liar
