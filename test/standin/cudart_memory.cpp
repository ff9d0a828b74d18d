// SPDX-License-Identifier: BSD-3-Clause
// CUDA's functions about memory.
#include <cstring>
#include <utility>
#include <vector>

#include "runtime.h"

using namespace puone::standin;

namespace {

uintptr_t address(const void* p) {
  return reinterpret_cast<uintptr_t>(p);
}

/// One end of a copy.
struct Range {
  enum class Kind {
    kDevice,
    kPinned,
    kPageable
  };
  Kind kind;
  int device; // of kDevice
};

/// Refuses a range that leaves its block.
Range classify(Runtime& all, const void* p, size_t bytes) {
  if (p == nullptr) refuse(cudaErrorInvalidValue);
  if (all.memory.inDeviceRange(p)) {
    const auto [base, block] = all.memory.findDevice(p);
    if (block == nullptr || block->released || bytes > block->bytes - (address(p) - base)) {
      refuse(cudaErrorInvalidValue);
    }
    return {Range::Kind::kDevice, block->device};
  }
  if (const auto* pinned = all.memory.findPinned(p)) {
    if (bytes > pinned->second.bytes - (address(p) - pinned->first)) refuse(cudaErrorInvalidValue);
    return {Range::Kind::kPinned, -1};
  }
  return {Range::Kind::kPageable, -1};
}

/// What the work needs when it runs: a block that lives by then, in the order of its stream.
void demandLife(Runtime& all, const char* what, const void* p) {
  const Runtime::Lock lock(all.mutex);
  const auto [base, block] = all.memory.findDevice(p);
  if (block != nullptr && block->live) return;
  complain("%s: %p is not allocated, or freed, by the time the work runs", what, p);
  refuse(cudaErrorIllegalAddress);
}

bool onDevice(const Range& range) {
  return range.kind == Range::Kind::kDevice;
}

void checkKind(cudaMemcpyKind kind, const Range& to, const Range& from) {
  bool right = true;
  switch (kind) {
    case cudaMemcpyHostToHost:
      right = !onDevice(to) && !onDevice(from);
      break;
    case cudaMemcpyHostToDevice:
      right = onDevice(to) && !onDevice(from);
      break;
    case cudaMemcpyDeviceToHost:
      right = !onDevice(to) && onDevice(from);
      break;
    case cudaMemcpyDeviceToDevice:
      right = onDevice(to) && onDevice(from);
      break;
    case cudaMemcpyDefault:
      break;
    default:
      refuse(cudaErrorInvalidMemcpyDirection);
  }
  if (!right) refuse(cudaErrorInvalidValue);
}

/// Where pageable memory takes part the copy is done with it when the call returns: its source was
/// staged, or the call has waited.
cudaError_t copy(
    Runtime& all,
    Runtime::Lock& lock,
    void* to,
    const void* from,
    size_t bytes,
    cudaMemcpyKind kind,
    const std::shared_ptr<Stream>& stream) {
  all.refuseLost(stream->device);
  if (bytes == 0) return cudaSuccess;
  const Range target = classify(all, to, bytes);
  const Range source = classify(all, from, bytes);
  checkKind(kind, target, source);
  if (address(to) < address(from) + bytes && address(from) < address(to) + bytes) {
    refuse(cudaErrorInvalidValue);
  }
  const bool captured = stream->capture != nullptr;
  const bool stage = source.kind == Range::Kind::kPageable && onDevice(target) && !captured;
  std::shared_ptr<std::vector<char>> staged;
  if (stage) {
    const auto* begin = static_cast<const char*>(from);
    staged = std::make_shared<std::vector<char>>(begin, begin + bytes);
  }
  const auto run = [&all, to, from, bytes, target, source, staged] {
    if (onDevice(target)) demandLife(all, "cudaMemcpyAsync", to);
    if (onDevice(source)) demandLife(all, "cudaMemcpyAsync", from);
    std::memcpy(to, staged != nullptr ? staged->data() : from, bytes);
    if (watcher == nullptr || !onDevice(target)) return;
    if (onDevice(source)) return watcher->copied(to, from, bytes);
    watcher->written(to, bytes);
  };
  all.submit(stream, {Work::Kind::kDevice, run, nullptr});
  const bool wait =
      target.kind == Range::Kind::kPageable || (source.kind == Range::Kind::kPageable && !stage);
  if (wait && !captured) {
    all.wait(lock, stream);
    return all.device(stream->device).sticky;
  }
  return cudaSuccess;
}

cudaError_t allocateAsync(
    Runtime& all, void** out, size_t bytes, int device, const std::shared_ptr<Stream>& stream) {
  if (out == nullptr) refuse(cudaErrorInvalidValue);
  all.refuseLost(stream->device);
  if (bytes == 0) {
    *out = nullptr;
    return cudaSuccess;
  }
  const bool captured = stream->capture != nullptr;
  const bool own = device == stream->device && !captured;
  void* base = all.memory.take(device, bytes, own ? stream->dying : 0);
  if (base == nullptr) refuse(cudaErrorMemoryAllocation);
  if (captured) {
    stream->capture->graph->blocks.push_back(std::make_shared<void*>(base));
  }
  all.submit(
      stream, {Work::Kind::kBookkeeping, [&all, base] { all.memory.enliven(base); }, nullptr});
  *out = base;
  return cudaSuccess;
}

} // namespace

// ---- blocks ----

cudaError_t cudaMalloc(void** out, size_t bytes) {
  return function(__func__, Needs::kHealth, [&](Runtime& all, Runtime::Lock&) {
    if (out == nullptr) refuse(cudaErrorInvalidValue);
    all.refuseUnsafe();
    if (bytes == 0) {
      *out = nullptr;
      return cudaSuccess;
    }
    void* base = all.memory.take(calling.device, bytes);
    if (base == nullptr) refuse(cudaErrorMemoryAllocation);
    all.memory.enliven(base);
    *out = base;
    return cudaSuccess;
  });
}

cudaError_t cudaFree(void* base) {
  return function(__func__, Needs::kHealth, [&](Runtime& all, Runtime::Lock&) {
    if (base == nullptr) return cudaSuccess;
    all.refuseUnsafe();
    const auto [start, block] = all.memory.findDevice(base);
    if (block == nullptr || start != address(base) || block->released) {
      refuse(cudaErrorInvalidValue);
    }
    // Whether work still uses it is for the caller to know: CUDA waits for nothing here that it
    // promises to wait for.
    all.memory.kill(base);
    all.memory.giveBack(base);
    return cudaSuccess;
  });
}

cudaError_t cudaMallocAsync(void** out, size_t bytes, cudaStream_t on) {
  return function(__func__, Needs::kDriver, [&](Runtime& all, Runtime::Lock&) {
    const auto stream = all.stream(on);
    return allocateAsync(all, out, bytes, stream->device, stream);
  });
}

cudaError_t cudaMallocFromPoolAsync(void** out, size_t bytes, cudaMemPool_t pool, cudaStream_t on) {
  return function(__func__, Needs::kDriver, [&](Runtime& all, Runtime::Lock&) {
    return allocateAsync(all, out, bytes, all.pools.find(pool)->device, all.stream(on));
  });
}

cudaError_t cudaFreeAsync(void* base, cudaStream_t on) {
  return function(__func__, Needs::kDriver, [&](Runtime& all, Runtime::Lock&) {
    if (base == nullptr) return cudaSuccess;
    const auto stream = all.stream(on);
    const auto [start, block] = all.memory.findDevice(base);
    if (block == nullptr || start != address(base) || block->released) {
      refuse(cudaErrorInvalidValue);
    }
    if (stream->capture != nullptr) {
      all.submit(
          stream, {Work::Kind::kBookkeeping, [&all, base] { all.memory.kill(base); }, nullptr});
      return cudaSuccess;
    }
    block->released = true;
    const size_t bytes = Memory::footprint(block->bytes);
    stream->dying += bytes;
    const auto run = [&all, base, stream = stream.get(), bytes] {
      all.memory.kill(base);
      all.memory.giveBack(base);
      stream->dying -= bytes;
    };
    all.submit(stream, {Work::Kind::kBookkeeping, run, nullptr});
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* out, const cudaMemPoolProps* properties) {
  return function(__func__, Needs::kDriver, [&](Runtime& all, Runtime::Lock&) {
    if (out == nullptr || properties == nullptr ||
        properties->allocType != cudaMemAllocationTypePinned ||
        properties->location.type != cudaMemLocationTypeDevice) {
      refuse(cudaErrorInvalidValue);
    }
    all.device(properties->location.id);
    *out = all.pools.add(std::make_shared<Pool>(Pool{properties->location.id}));
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr which, void* value) {
  return function(__func__, Needs::kDriver, [&](Runtime& all, Runtime::Lock&) {
    all.pools.find(pool); // how much a pool hoards makes no difference here
    if (which != cudaMemPoolAttrReleaseThreshold || value == nullptr) {
      refuse(cudaErrorInvalidValue);
    }
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return function(__func__, Needs::kDriver, [&](Runtime& all, Runtime::Lock&) {
    all.pools.take(pool);
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total) {
  return function(__func__, Needs::kHealth, [&](Runtime& all, Runtime::Lock&) {
    if (free_bytes == nullptr || total == nullptr) refuse(cudaErrorInvalidValue);
    *free_bytes = all.memory.freeBytes(calling.device);
    *total = all.memory.bytesPerDevice();
    return cudaSuccess;
  });
}

cudaError_t cudaHostAlloc(void** out, size_t bytes, unsigned flags) {
  return function(__func__, Needs::kHealth, [&](Runtime& all, Runtime::Lock&) {
    const unsigned known = cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
    if (out == nullptr || (flags & ~known) != 0) refuse(cudaErrorInvalidValue);
    all.refuseUnsafe();
    *out = bytes > 0 ? all.memory.takePinned(bytes, calling.device) : nullptr;
    if (bytes > 0 && *out == nullptr) refuse(cudaErrorMemoryAllocation);
    return cudaSuccess;
  });
}

cudaError_t cudaMallocHost(void** out, size_t bytes) {
  return cudaHostAlloc(out, bytes, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void* base) {
  return function(__func__, Needs::kHealth, [&](Runtime& all, Runtime::Lock&) {
    all.refuseUnsafe();
    if (base != nullptr && !all.memory.givePinnedBack(base)) refuse(cudaErrorInvalidValue);
    return cudaSuccess;
  });
}

cudaError_t cudaHostGetDevicePointer(void** out, void* host, unsigned flags) {
  return function(__func__, Needs::kHealth, [&](Runtime& all, Runtime::Lock&) {
    if (out == nullptr || flags != 0 || all.memory.findPinned(host) == nullptr) {
      refuse(cudaErrorInvalidValue);
    }
    *out = host;
    return cudaSuccess;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* out, const void* p) {
  return function(__func__, Needs::kDriver, [&](Runtime& all, Runtime::Lock&) {
    if (out == nullptr) refuse(cudaErrorInvalidValue);
    *out = {};
    auto* plain = const_cast<void*>(p);
    const Memory::Found found = all.memory.findDevice(p);
    const auto* pinned = all.memory.findPinned(p);
    if (found.block != nullptr && !found.block->released) {
      out->type = cudaMemoryTypeDevice;
      out->device = found.block->device;
      out->devicePointer = plain;
    } else if (pinned != nullptr) {
      out->type = cudaMemoryTypeHost;
      out->device = pinned->second.device;
      out->devicePointer = out->hostPointer = plain;
    } else {
      out->type = cudaMemoryTypeUnregistered;
      out->device = cudaInvalidDeviceId;
      out->hostPointer = plain;
    }
    return cudaSuccess;
  });
}

// ---- copies ----

cudaError_t cudaMemcpyAsync(
    void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t on) {
  return function(__func__, Needs::kDriver, [&](Runtime& all, Runtime::Lock& lock) {
    return copy(all, lock, to, from, bytes, kind, all.stream(on));
  });
}

cudaError_t cudaMemcpyPeerAsync(
    void* to, int to_device, const void* from, int from_device, size_t bytes, cudaStream_t on) {
  return function(__func__, Needs::kDriver, [&](Runtime& all, Runtime::Lock& lock) {
    const auto stream = all.stream(on);
    if (bytes > 0 && classify(all, to, bytes).device != to_device) refuse(cudaErrorInvalidValue);
    if (bytes > 0 && classify(all, from, bytes).device != from_device) {
      refuse(cudaErrorInvalidValue);
    }
    return copy(all, lock, to, from, bytes, cudaMemcpyDeviceToDevice, stream);
  });
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t on) {
  return function(__func__, Needs::kDriver, [&](Runtime& all, Runtime::Lock&) {
    const auto stream = all.stream(on);
    all.refuseLost(stream->device);
    if (bytes == 0) return cudaSuccess;
    const Range target = classify(all, to, bytes);
    if (target.kind == Range::Kind::kPageable) refuse(cudaErrorInvalidValue);
    const auto run = [&all, to, value, bytes, target] {
      if (onDevice(target)) demandLife(all, "cudaMemsetAsync", to);
      std::memset(to, value, bytes);
      if (watcher != nullptr) watcher->written(to, bytes);
    };
    all.submit(stream, {Work::Kind::kDevice, run, nullptr});
    return cudaSuccess;
  });
}
