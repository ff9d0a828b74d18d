// SPDX-License-Identifier: BSD-3-Clause
// CUDA's functions about devices and errors.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "runtime.h"

using namespace puone::standin;

namespace {

constexpr int kVersion = 13000;
constexpr int kMostUrgent = -5;

template <class T>
T& given(T* out) {
  if (out == nullptr) refuse(cudaErrorInvalidValue);
  return *out;
}

cudaDeviceProp properties(const Runtime& all, int index) {
  cudaDeviceProp found{};
  std::snprintf(found.name, sizeof found.name, "stand-in for a GPU");
  found.uuid.bytes[0] = static_cast<char>(index + 1);
  found.totalGlobalMem = all.memory.bytesPerDevice();
  found.sharedMemPerBlock = 48 << 10;
  found.sharedMemPerBlockOptin = 227 << 10;
  found.sharedMemPerMultiprocessor = 228 << 10;
  found.regsPerBlock = found.regsPerMultiprocessor = 65536;
  found.warpSize = 32;
  found.maxThreadsPerBlock = 1024;
  found.maxThreadsDim[0] = found.maxThreadsDim[1] = 1024;
  found.maxThreadsDim[2] = 64;
  found.maxGridSize[0] = INT32_MAX;
  found.maxGridSize[1] = found.maxGridSize[2] = 65535;
  found.major = 9;
  found.multiProcessorCount = 4;
  found.maxThreadsPerMultiProcessor = 2048;
  found.maxBlocksPerMultiProcessor = 32;
  found.textureAlignment = 512;
  found.canMapHostMemory = found.unifiedAddressing = found.concurrentKernels = 1;
  found.streamPrioritiesSupported = found.memoryPoolsSupported = found.cooperativeLaunch = 1;
  found.canUseHostPointerForRegisteredMem = 1;
  found.asyncEngineCount = 3;
  found.l2CacheSize = 50 << 20;
  found.memoryBusWidth = 6144;
  found.pciBusID = index + 1;
  return found;
}

int attribute(const cudaDeviceProp& of, cudaDeviceAttr which) {
  switch (which) {
    case cudaDevAttrMaxThreadsPerBlock:
      return of.maxThreadsPerBlock;
    case cudaDevAttrMultiProcessorCount:
      return of.multiProcessorCount;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return of.maxThreadsPerMultiProcessor;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      return of.maxBlocksPerMultiProcessor;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return static_cast<int>(of.sharedMemPerBlock);
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return static_cast<int>(of.sharedMemPerBlockOptin);
    case cudaDevAttrWarpSize:
      return of.warpSize;
    case cudaDevAttrComputeCapabilityMajor:
      return of.major;
    case cudaDevAttrComputeCapabilityMinor:
      return of.minor;
    case cudaDevAttrL2CacheSize:
      return of.l2CacheSize;
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrStreamPrioritiesSupported:
      return 1;
    default:
      violation("attribute %d is not modelled", static_cast<int>(which));
  }
}

} // namespace

// ---- errors ----

cudaError_t cudaPeekAtLastError() {
  if (const cudaError_t error = obstacle(__func__, Needs::kNothing)) return error;
  Runtime& all = runtime();
  const Runtime::Lock lock(all.mutex);
  if (all.initialised && all.current().sticky != cudaSuccess) return all.current().sticky;
  return calling.last_error;
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  calling.last_error = cudaSuccess;
  return error;
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
#define NAME(code) \
  case code:       \
    return #code
    NAME(cudaSuccess);
    NAME(cudaErrorInvalidValue);
    NAME(cudaErrorMemoryAllocation);
    NAME(cudaErrorInitializationError);
    NAME(cudaErrorInsufficientDriver);
    NAME(cudaErrorInvalidConfiguration);
    NAME(cudaErrorDevicesUnavailable);
    NAME(cudaErrorNoDevice);
    NAME(cudaErrorInvalidDevice);
    NAME(cudaErrorECCUncorrectable);
    NAME(cudaErrorInvalidResourceHandle);
    NAME(cudaErrorIllegalState);
    NAME(cudaErrorNotReady);
    NAME(cudaErrorIllegalAddress);
    NAME(cudaErrorLaunchOutOfResources);
    NAME(cudaErrorPeerAccessAlreadyEnabled);
    NAME(cudaErrorPeerAccessNotEnabled);
    NAME(cudaErrorAssert);
    NAME(cudaErrorLaunchFailure);
    NAME(cudaErrorNotPermitted);
    NAME(cudaErrorNotSupported);
    NAME(cudaErrorStreamCaptureUnsupported);
    NAME(cudaErrorStreamCaptureInvalidated);
    NAME(cudaErrorStreamCaptureMerge);
    NAME(cudaErrorStreamCaptureUnmatched);
    NAME(cudaErrorStreamCaptureUnjoined);
    NAME(cudaErrorStreamCaptureIsolation);
    NAME(cudaErrorCapturedEvent);
    NAME(cudaErrorStreamCaptureWrongThread);
    NAME(cudaErrorUnknown);
#undef NAME
    default:
      return "unrecognized error code";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  return cudaGetErrorName(error);
}

// ---- devices ----

cudaError_t cudaRuntimeGetVersion(int* version) {
  return function(__func__, Needs::kNothing, [&](Runtime&, Runtime::Lock&) {
    given(version) = kVersion;
    return cudaSuccess;
  });
}

cudaError_t cudaDriverGetVersion(int* version) {
  return function(__func__, Needs::kNothing, [&](Runtime& all, Runtime::Lock&) {
    given(version) = all.options.driver ? kVersion : 0;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceCount(int* count) {
  return function(__func__, Needs::kDriver, [&](Runtime& all, Runtime::Lock&) {
    given(count) = all.options.devices;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* index) {
  return function(__func__, Needs::kDriver, [&](Runtime&, Runtime::Lock&) {
    given(index) = calling.device;
    return cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int index) {
  return function(__func__, Needs::kDriver, [&](Runtime& all, Runtime::Lock&) {
    all.device(index);
    calling.device = index;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* out, int index) {
  return function(__func__, Needs::kDriver, [&](Runtime& all, Runtime::Lock&) {
    all.device(index);
    given(out) = properties(all, index);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int index) {
  return function(__func__, Needs::kDriver, [&](Runtime& all, Runtime::Lock&) {
    all.device(index);
    given(value) = attribute(properties(all, index), which);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return function(__func__, Needs::kDriver, [&](Runtime&, Runtime::Lock&) {
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = kMostUrgent;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return function(__func__, Needs::kHealth, [&](Runtime& all, Runtime::Lock& lock) {
    const int index = calling.device;
    all.refuseUnsafe();
    all.waitDevice(lock, index);
    return all.device(index).sticky;
  });
}

// ---- peers ----

cudaError_t cudaDeviceCanAccessPeer(int* can, int index, int peer) {
  return function(__func__, Needs::kDriver, [&](Runtime& all, Runtime::Lock&) {
    all.device(index);
    all.device(peer);
    given(can) = index != peer ? 1 : 0;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return function(__func__, Needs::kHealth, [&](Runtime& all, Runtime::Lock&) {
    all.device(peer);
    if (flags != 0) refuse(cudaErrorInvalidValue);
    if (peer == calling.device) refuse(cudaErrorInvalidDevice);
    if (!all.current().peers.insert(peer).second) refuse(cudaErrorPeerAccessAlreadyEnabled);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return function(__func__, Needs::kHealth, [&](Runtime& all, Runtime::Lock&) {
    all.device(peer);
    if (all.current().peers.erase(peer) == 0) refuse(cudaErrorPeerAccessNotEnabled);
    return cudaSuccess;
  });
}
