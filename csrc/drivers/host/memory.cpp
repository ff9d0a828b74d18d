// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/host/memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <iterator>

#include "drivers/common/error.h"

namespace puone::host {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

} // namespace

Memory::~Memory() {
  for (const auto& [address, block] : blocks_) std::free(reinterpret_cast<void*>(address));
}

void* Memory::allocate(puone_memory_kind kind, size_t bytes) {
  const std::lock_guard guard(mutex_);
  const bool on_device = kind == PUONE_MEMORY_DEVICE;
  if (on_device && bytes > kTotal - used_) {
    fail(
        PUONE_OUT_OF_MEMORY,
        "%s were asked for and %s are free",
        humanBytes(bytes).c_str(),
        humanBytes(kTotal - used_).c_str());
  }
  // The first access to each page of a large block costs more than the work on it.
  const size_t alignment = bytes < kHugePage ? kAlignment : kHugePage;
  void* block = nullptr;
  if (bytes > SIZE_MAX - alignment || posix_memalign(&block, alignment, bytes) != 0) {
    fail(PUONE_OUT_OF_MEMORY, "the host has not %s left", humanBytes(bytes).c_str());
  }
  if (alignment == kHugePage) madvise(block, bytes, MADV_HUGEPAGE); // as a wish: it may fail
  blocks_.emplace(reinterpret_cast<uintptr_t>(block), Block{bytes, kind});
  if (on_device) used_ += bytes;
  return block;
}

void Memory::release(void* block) {
  const std::lock_guard guard(mutex_);
  const auto found = blocks_.find(reinterpret_cast<uintptr_t>(block));
  if (found == blocks_.end()) fail(PUONE_INVALID_ARGUMENT, "%p is not the start of a block", block);
  if (found->second.kind == PUONE_MEMORY_DEVICE) used_ -= found->second.bytes;
  blocks_.erase(found);
  std::free(block);
}

puone_pointer_attributes Memory::attributes(const void* address) const {
  const std::lock_guard guard(mutex_);
  puone_pointer_attributes result{};
  result.kind = PUONE_MEMORY_UNREGISTERED;
  result.device = -1;
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  const auto behind = blocks_.upper_bound(wanted);
  if (behind == blocks_.begin()) return result;
  const auto& [start, block] = *std::prev(behind);
  if (wanted - start >= block.bytes) return result;
  result.kind = block.kind;
  result.device = block.kind == PUONE_MEMORY_DEVICE ? 0 : -1;
  result.base = reinterpret_cast<void*>(start);
  result.size = block.bytes;
  return result;
}

uint64_t Memory::freeBytes() const {
  const std::lock_guard guard(mutex_);
  return kTotal - used_;
}

} // namespace puone::host
