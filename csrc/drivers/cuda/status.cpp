// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/cuda/status.h"

#include <algorithm>
#include <atomic>
#include <iterator>

#include "drivers/common/error.h"

namespace puone::cuda {
namespace {

struct Meaning {
  cudaError_t native;
  puone_status status;
};

constexpr Meaning kMeanings[] = {
    {cudaErrorMemoryAllocation, PUONE_OUT_OF_MEMORY},

    {cudaErrorInvalidValue, PUONE_INVALID_ARGUMENT},
    {cudaErrorInvalidHostPointer, PUONE_INVALID_ARGUMENT},
    {cudaErrorInvalidDevicePointer, PUONE_INVALID_ARGUMENT},
    {cudaErrorInvalidMemcpyDirection, PUONE_INVALID_ARGUMENT},
    {cudaErrorInvalidResourceHandle, PUONE_INVALID_ARGUMENT},
    {cudaErrorIllegalState, PUONE_INVALID_ARGUMENT},
    {cudaErrorStreamCaptureUnsupported, PUONE_INVALID_ARGUMENT},
    {cudaErrorStreamCaptureInvalidated, PUONE_INVALID_ARGUMENT},
    {cudaErrorStreamCaptureMerge, PUONE_INVALID_ARGUMENT},
    {cudaErrorStreamCaptureUnmatched, PUONE_INVALID_ARGUMENT},
    {cudaErrorStreamCaptureUnjoined, PUONE_INVALID_ARGUMENT},
    {cudaErrorStreamCaptureIsolation, PUONE_INVALID_ARGUMENT},
    {cudaErrorStreamCaptureImplicit, PUONE_INVALID_ARGUMENT},
    {cudaErrorStreamCaptureWrongThread, PUONE_INVALID_ARGUMENT},
    {cudaErrorCapturedEvent, PUONE_INVALID_ARGUMENT},

    {cudaErrorInvalidDevice, PUONE_INVALID_DEVICE},

    {cudaErrorNotSupported, PUONE_UNSUPPORTED},
    {cudaErrorCallRequiresNewerDriver, PUONE_UNSUPPORTED},
    {cudaErrorPeerAccessUnsupported, PUONE_UNSUPPORTED},

    {cudaErrorAssert, PUONE_DEVICE_LOST},
    {cudaErrorContained, PUONE_DEVICE_LOST},
    {cudaErrorContextIsDestroyed, PUONE_DEVICE_LOST},
    {cudaErrorECCUncorrectable, PUONE_DEVICE_LOST},
    {cudaErrorExternalDevice, PUONE_DEVICE_LOST},
    {cudaErrorHardwareStackError, PUONE_DEVICE_LOST},
    {cudaErrorIllegalAddress, PUONE_DEVICE_LOST},
    {cudaErrorIllegalInstruction, PUONE_DEVICE_LOST},
    {cudaErrorInvalidAddressSpace, PUONE_DEVICE_LOST},
    {cudaErrorInvalidPc, PUONE_DEVICE_LOST},
    {cudaErrorLaunchFailure, PUONE_DEVICE_LOST},
    {cudaErrorLaunchTimeout, PUONE_DEVICE_LOST},
    {cudaErrorMisalignedAddress, PUONE_DEVICE_LOST},
    {cudaErrorMpsClientTerminated, PUONE_DEVICE_LOST},
    {cudaErrorNvlinkUncorrectable, PUONE_DEVICE_LOST},
    {cudaErrorTensorMemoryLeak, PUONE_DEVICE_LOST},
};

// Why each device is lost; leaked, since a loss lasts as long as the process.
std::atomic<const std::string*> losses[kMaxDevices];

void lose(int32_t device, const std::string& reason) {
  if (device < 0 || device >= kMaxDevices) return;
  const std::string* none = nullptr;
  const auto* text = new std::string(reason);
  if (!losses[device].compare_exchange_strong(none, text)) delete text;
}

void remember(puone_status status, const std::string& text) {
  cudaGetLastError(); // so that the next call does not answer for this one
  if (status != PUONE_DEVICE_LOST) return;
  int device = -1;
  if (cudaGetDevice(&device) == cudaSuccess) lose(device, text);
}

} // namespace

puone_status statusOf(cudaError_t native) {
  const auto found = std::find_if(std::begin(kMeanings), std::end(kMeanings), [=](const auto& m) {
    return m.native == native;
  });
  return found != std::end(kMeanings) ? found->status : PUONE_INTERNAL;
}

std::string errorText(const char* call, cudaError_t native) {
  return format(
      "%s: %s (%d): %s",
      call,
      cudaGetErrorName(native),
      static_cast<int>(native),
      cudaGetErrorString(native));
}

void check(const char* call, cudaError_t native) {
  if (native == cudaSuccess) [[likely]] {
    return;
  }
  Error error{statusOf(native), errorText(call, native)};
  remember(error.status, error.text);
  throw error;
}

bool isDone(const char* call, cudaError_t native) {
  if (native == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  check(call, native);
  return true;
}

void note(const char* call, cudaError_t native) noexcept {
  try {
    isDone(call, native);
  } catch (...) {
    // A loss has been noted by check().
  }
}

void checkStart(cudaError_t native) {
  check("cudaLaunchKernel", native);
}

void checkAlive(int32_t device) {
  const std::string* reason = losses[device].load(std::memory_order_acquire);
  if (reason != nullptr) [[unlikely]] {
    fail(PUONE_DEVICE_LOST, "puone:%d is lost: %s", device, reason->c_str());
  }
}

bool isLost(int32_t device) noexcept {
  return losses[device].load(std::memory_order_acquire) != nullptr;
}

} // namespace puone::cuda
