// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/cuda/scratch.h"

#include "drivers/cuda/status.h"

namespace puone::cuda {
namespace {

/// What the pool keeps at a synchronisation instead of giving it back to the device.
constexpr uint64_t kRetained = uint64_t{64} << 20;

} // namespace

ScratchPool::~ScratchPool() {
  if (pool_ != nullptr) note("cudaMemPoolDestroy", cudaMemPoolDestroy(pool_));
}

cudaMemPool_t ScratchPool::pool() {
  std::call_once(created_, [this] {
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = device_;
    cudaMemPool_t pool = nullptr;
    check("cudaMemPoolCreate", cudaMemPoolCreate(&pool, &properties));
    pool_ = pool;
    uint64_t retained = kRetained;
    check(
        "cudaMemPoolSetAttribute",
        cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &retained));
  });
  return pool_;
}

void* ScratchPool::allocate(size_t bytes, cudaStream_t stream) {
  void* memory = nullptr;
  check("cudaMallocFromPoolAsync", cudaMallocFromPoolAsync(&memory, bytes, pool(), stream));
  return memory;
}

void ScratchPool::free(void* memory, cudaStream_t stream) noexcept {
  note("cudaFreeAsync", cudaFreeAsync(memory, stream));
}

} // namespace puone::cuda
