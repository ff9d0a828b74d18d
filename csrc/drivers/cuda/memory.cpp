// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/cuda/memory.h"

#include <cuda_runtime_api.h>

#include "drivers/common/error.h"
#include "drivers/cuda/status.h"

namespace puone::cuda {
namespace {

/// CUDA carves small blocks out of chunks of this size, and keeps those.
constexpr uintptr_t kChunk = uintptr_t{2} << 20;
constexpr size_t kSmall = kChunk / 2;

uintptr_t address(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}
void* pointer(uintptr_t address) {
  return reinterpret_cast<void*>(address);
}

[[noreturn]] void failOutOfMemory(int32_t device, size_t bytes) {
  size_t free_bytes = 0;
  size_t total = 0;
  note("cudaMemGetInfo", cudaMemGetInfo(&free_bytes, &total));
  fail(
      PUONE_OUT_OF_MEMORY,
      "puone:%d: tried to allocate %s, %s free of %s: %s",
      device,
      humanBytes(bytes).c_str(),
      humanBytes(free_bytes).c_str(),
      humanBytes(total).c_str(),
      errorText("cudaMalloc", cudaErrorMemoryAllocation).c_str());
}

} // namespace

Memory::~Memory() {
  for (const auto& [base, block] : blocks_) release(pointer(base), block);
}

void Memory::add(void* base, const Block& block) {
  try {
    const std::lock_guard guard(mutex_);
    // The chunk first: CUDA has carved a block out of it, even if the table cannot take the block.
    if (block.device >= 0 && block.bytes <= kSmall) carved_.insert(address(base) / kChunk);
    blocks_.emplace(address(base), block);
  } catch (...) {
    release(base, block);
    throw;
  }
}

void Memory::release(void* base, const Block& block) {
  block.device < 0 ? releaseHost(base) : release(base);
}

void* Memory::allocate(int32_t device, size_t bytes, size_t total) {
  if (bytes > total) failOutOfMemory(device, bytes); // for CUDA some sizes are not even valid
  void* base = nullptr;
  const cudaError_t native = cudaMalloc(&base, bytes);
  if (native == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    failOutOfMemory(device, bytes);
  }
  check("cudaMalloc", native);
  add(base, {bytes, device});
  return base;
}

void Memory::release(void* base) {
  note("cudaFree", cudaFree(base));
}

void* Memory::allocateHost(size_t bytes) {
  if (bytes > SIZE_MAX / 2) {
    fail(PUONE_OUT_OF_MEMORY, "tried to allocate %s of pinned memory", humanBytes(bytes).c_str());
  }
  void* base = nullptr;
  check("cudaHostAlloc", cudaHostAlloc(&base, bytes, cudaHostAllocPortable | cudaHostAllocMapped));
  add(base, {bytes, -1});
  return base;
}

void Memory::releaseHost(void* base) {
  note("cudaFreeHost", cudaFreeHost(base));
}

int32_t Memory::retire(void* base) {
  const std::lock_guard guard(mutex_);
  const auto found = blocks_.find(address(base));
  if (found == blocks_.end()) {
    fail(PUONE_INVALID_ARGUMENT, "%p is not the start of a live block", base);
  }
  const int32_t device = found->second.device;
  blocks_.erase(found);
  return device;
}

Memory::Blocks::const_iterator Memory::find(uintptr_t address) const {
  const auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return blocks_.end();
  const auto found = std::prev(after);
  return address - found->first < found->second.bytes ? found : blocks_.end();
}

int32_t Memory::foreignDevice(uintptr_t at) const {
  // CUDA may know only chunks. A chunk that contains one of our small blocks, or contained one, has
  // no memory of another user.
  const uintptr_t chunk = at / kChunk;
  if (carved_.contains(chunk)) return -1;
  const auto after = blocks_.lower_bound((chunk + 1) * kChunk);
  if (after != blocks_.begin()) {
    const auto& [base, block] = *std::prev(after);
    if (base + block.bytes > chunk * kChunk) return -1;
  }
  cudaPointerAttributes found{};
  const cudaError_t native = cudaPointerGetAttributes(&found, pointer(at));
  if (native != cudaSuccess) cudaGetLastError();
  return native == cudaSuccess && found.type == cudaMemoryTypeDevice ? found.device : -1;
}

puone_pointer_attributes Memory::attributes(const void* p) const {
  const std::lock_guard guard(mutex_);
  const auto block = find(address(p));
  if (block != blocks_.end()) {
    const auto& [bytes, device] = block->second;
    const auto kind = device < 0 ? PUONE_MEMORY_HOST : PUONE_MEMORY_DEVICE;
    return {0, kind, device, 0, pointer(block->first), bytes};
  }
  const int32_t device = foreignDevice(address(p));
  if (device < 0) return {0, PUONE_MEMORY_UNREGISTERED, -1, 0, nullptr, 0};
  return {0, PUONE_MEMORY_DEVICE, device, 0, const_cast<void*>(p), 0};
}

} // namespace puone::cuda
