// SPDX-License-Identifier: BSD-3-Clause
// The entries of kernels, and the check of the workspace that a launch asks its caller for.
#include <cstddef>
#include <cstdint>

#include "hal/validation/checked_entries.h"
#include "hal/validation/checks.h"
#include "hal/validation/live_objects.h"
#include "hal/validation/memory_checks.h"
#include "hal/validation/memory_extents.h"
#include "hal/validation/refusals.h"
#include "hal/validation/state.h"

namespace puone::validation {
namespace {

/// The least memory_alignment that a driver may have.
constexpr size_t kLeastAlignment = 256;

/// Memory that a kernel on `device` may use.
puone_status checkWorkspace(const char* entry, const void* made, size_t bytes, int32_t device) {
  puone_pointer_attributes block;
  CHECKED(attributesOf(entry, made, block));
  if (block.kind != PUONE_MEMORY_DEVICE || block.device != device) {
    return refuse(
        PUONE_INVALID_ARGUMENT,
        entry,
        "the workspace %p that the launch context gave is not memory of device %d",
        made,
        device);
  }
  const size_t room = address(block.base) + block.size - address(made);
  if (block.size != 0 && room < bytes) {
    return refuse(
        PUONE_INVALID_ARGUMENT,
        entry,
        "the workspace %p that the launch context gave has %zu bytes, not %zu",
        made,
        room,
        bytes);
  }
  if (address(made) % kLeastAlignment != 0) {
    return refuse(
        PUONE_INVALID_ARGUMENT,
        entry,
        "the workspace %p that the launch context gave is not aligned to %zu bytes",
        made,
        kLeastAlignment);
  }
  return PUONE_OK;
}

/// Stands between the driver and the caller's callback.
struct CheckedContext {
  const puone_launch_context* callers;
  int32_t device;

  static puone_status allocate(void* user, size_t bytes, void** out) {
    constexpr const char* entry = "kernel_launch";
    const auto& self = *static_cast<const CheckedContext*>(user);
    void* made = nullptr;
    CHECKED(self.callers->allocate(self.callers->user, bytes, &made));
    // Without this capability nobody can say whose memory it is.
    if (has(PUONE_CAP_MEMORY)) CHECKED(checkWorkspace(entry, made, bytes, self.device));
    *out = made;
    return PUONE_OK;
  }
};

} // namespace

puone_status kernelFind(const char* name, puone_kernel_info* info, puone_kernel* out) {
  constexpr const char* entry = "kernel_find";
  CHECKED(checkOut(entry, out));
  if (info != nullptr) CHECKED(checkStruct(entry, info));
  if (name == nullptr) return refuse(PUONE_INVALID_ARGUMENT, entry, "name is NULL");
  puone_kernel_info found{};
  found.struct_size = sizeof found;
  puone_kernel kernel = nullptr;
  CHECKED(answered(driver->kernel_find(name, info != nullptr ? info : &found, &kernel)));
  const uint64_t args_size = info != nullptr ? info->args_size : found.args_size;
  const uint64_t bits = kernelBits(args_size, /*device=*/-1);
  CHECKED(keep<puone_kernel>(entry, live().kernels, kernel, bits, nullptr));
  *out = kernel;
  return PUONE_OK;
}

puone_status kernelLaunch(
    puone_kernel kernel,
    const void* args,
    size_t bytes,
    puone_stream stream,
    const puone_launch_context* context) {
  constexpr const char* entry = "kernel_launch";
  uint64_t kernel_bits = 0;
  uint64_t stream_bits = 0;
  CHECKED(checkHandle(entry, "kernel", live().kernels, kernel, kernel_bits));
  CHECKED(checkStream(entry, stream, stream_bits));
  const uint64_t args_size = argsSizeOf(kernel_bits);
  const int32_t device = onlyDeviceOf(kernel_bits);
  if (device >= 0 && device != deviceOf(stream_bits)) {
    return refuse(
        PUONE_INVALID_ARGUMENT,
        entry,
        "the kernel's module is on device %d, the stream on device %d",
        device,
        deviceOf(stream_bits));
  }
  if (args == nullptr) return refuse(PUONE_INVALID_ARGUMENT, entry, "args is NULL");
  if (bytes != args_size) {
    return refuse(
        PUONE_INVALID_ARGUMENT,
        entry,
        "the kernel takes %llu bytes of arguments, not %zu",
        static_cast<unsigned long long>(args_size),
        bytes);
  }
  if (context == nullptr) {
    return answered(driver->kernel_launch(kernel, args, bytes, stream, nullptr));
  }
  CHECKED(checkStruct(entry, context));
  if (context->allocate == nullptr) {
    return refuse(PUONE_INVALID_ARGUMENT, entry, "the launch context has no allocate");
  }
  CheckedContext checked{context, deviceOf(stream_bits)};
  const puone_launch_context passed{
      sizeof(puone_launch_context), 0, &CheckedContext::allocate, &checked};
  was_refused = false; // of the callback; the driver returns the callback's status
  const puone_status status = driver->kernel_launch(kernel, args, bytes, stream, &passed);
  return was_refused ? status : answered(status);
}

} // namespace puone::validation
