// SPDX-License-Identifier: BSD-3-Clause
#include "memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "violation.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) (void(address), void(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) (void(address), void(bytes))
#endif

namespace puone::standin {

const StandinWatcher* watcher = nullptr;

namespace {

constexpr size_t kAlignment = 512;
constexpr size_t kGuard = 512; // after each block; the address sanitizer watches it
constexpr size_t kPage = 4096;
constexpr unsigned char kFresh = 0xA5; // poison: two values that no test writes
constexpr unsigned char kDead = 0xDB;

size_t roundUp(size_t n, size_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

void* pointer(uintptr_t address) {
  return reinterpret_cast<void*>(address);
}

uintptr_t address(const void* p) {
  return reinterpret_cast<uintptr_t>(p);
}

} // namespace

Memory::Memory(int devices, size_t bytes_per_device, bool poison, bool guarded)
    : capacity_(bytes_per_device),
      poison_(poison),
      guarded_(guarded),
      span_(2 * bytes_per_device + kPage) {
  arenas_.resize(static_cast<size_t>(devices));
  if (devices == 0) return;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  const int protection = guarded ? PROT_NONE : PROT_READ | PROT_WRITE;
  void* base = mmap(nullptr, span_ * arenas_.size(), protection, flags, -1, 0);
  if (base == MAP_FAILED) violation("no addresses for the devices' memory");
  front_ = address(base);
  for (size_t i = 0; i < arenas_.size(); ++i) {
    const uintptr_t low = front_ + i * span_;
    arenas_[i] = {low, low + span_, low, low, 0, {}};
  }
}

Memory::~Memory() {
  for (const Arena& arena : arenas_) {
    ASAN_UNPOISON_MEMORY_REGION(pointer(arena.low), arena.top - arena.low);
  }
  if (front_ != 0) munmap(pointer(front_), span_ * arenas_.size());
  for (const auto& [base, block] : pinned_) std::free(pointer(base));
}

size_t Memory::footprint(size_t bytes) {
  return roundUp(bytes, kAlignment);
}

/// The next gap from the cursor on, around the end if need be: freed addresses come back late.
uintptr_t Memory::place(const Arena& arena, size_t span) {
  for (uintptr_t at : {arena.cursor, arena.low}) {
    for (auto next = arena.blocks.lower_bound(at);; ++next) {
      const bool last = next == arena.blocks.end();
      if ((last ? arena.high : next->first) - at >= span) return at;
      if (last) break;
      at = next->first + footprint(next->second.bytes) + kGuard;
    }
  }
  return 0;
}

void* Memory::take(int device, size_t bytes, size_t spare) {
  Arena& arena = arenas_[static_cast<size_t>(device)];
  if (bytes > capacity_ || arena.used + footprint(bytes) > capacity_ + spare) return nullptr;
  const size_t span = footprint(bytes) + kGuard;
  const uintptr_t base = place(arena, span);
  if (base == 0) return nullptr;
  arena.cursor = base + span;
  arena.top = std::max(arena.top, arena.cursor);
  ASAN_POISON_MEMORY_REGION(pointer(base), span);
  arena.used += footprint(bytes);
  arena.blocks.emplace(base, Block{device, bytes, false, false});
  return pointer(base);
}

void Memory::enliven(void* base) {
  const Found found = findDevice(base);
  found.block->live = true;
  ASAN_UNPOISON_MEMORY_REGION(base, found.block->bytes);
  fill(base, found.block->bytes, kFresh);
  if (watcher != nullptr) watcher->forgotten(base, found.block->bytes);
}

void Memory::kill(void* base) {
  const Found found = findDevice(base);
  found.block->live = false;
  fill(base, found.block->bytes, kDead);
  ASAN_POISON_MEMORY_REGION(base, found.block->bytes);
}

void Memory::giveBack(void* base) {
  const Found found = findDevice(base);
  Arena& arena = *arenaOf(base);
  const size_t bytes = footprint(found.block->bytes);
  const uintptr_t first_page = roundUp(found.base, kPage);
  const uintptr_t end = (found.base + bytes) / kPage * kPage;
  if (end > first_page) madvise(pointer(first_page), end - first_page, MADV_DONTNEED);
  arena.used -= bytes;
  arena.blocks.erase(found.base);
}

void Memory::fill(void* base, size_t bytes, unsigned char value) {
  if (!poison_) return;
  open();
  std::memset(base, value, bytes);
  close();
}

size_t Memory::freeBytes(int device) const {
  const Arena& arena = arenas_[static_cast<size_t>(device)];
  return capacity_ - std::min(arena.used, capacity_);
}

bool Memory::inDeviceRange(const void* p) const {
  return address(p) - front_ < span_ * arenas_.size();
}

Memory::Arena* Memory::arenaOf(const void* p) {
  return inDeviceRange(p) ? &arenas_[(address(p) - front_) / span_] : nullptr;
}

Memory::Found Memory::findDevice(const void* p) {
  Arena* arena = arenaOf(p);
  if (arena == nullptr) return {};
  auto after = arena->blocks.upper_bound(address(p));
  if (after == arena->blocks.begin()) return {};
  auto& [base, block] = *std::prev(after);
  return address(p) - base < block.bytes ? Found{base, &block} : Found{};
}

size_t Memory::deviceBlocks() const {
  size_t count = 0;
  for (const Arena& arena : arenas_) count += arena.blocks.size();
  return count;
}

void* Memory::takePinned(size_t bytes, int device) {
  if (bytes > SIZE_MAX / 2) return nullptr;
  void* base = nullptr;
  if (posix_memalign(&base, kAlignment, bytes) != 0) return nullptr;
  pinned_.emplace(address(base), Pinned{bytes, device});
  if (watcher != nullptr) watcher->written(base, bytes); // the host writes when it likes
  return base;
}

bool Memory::givePinnedBack(void* base) {
  const auto found = pinned_.find(address(base));
  if (found == pinned_.end()) return false;
  if (poison_) std::memset(base, kDead, found->second.bytes);
  pinned_.erase(found);
  std::free(base);
  return true;
}

const std::pair<const uintptr_t, Memory::Pinned>* Memory::findPinned(const void* p) const {
  auto after = pinned_.upper_bound(address(p));
  if (after == pinned_.begin()) return nullptr;
  const auto& found = *std::prev(after);
  return address(p) - found.first < found.second.bytes ? &found : nullptr;
}

std::vector<StandinRange> Memory::ranges() const {
  std::vector<StandinRange> all;
  for (const Arena& arena : arenas_) {
    for (const auto& [base, block] : arena.blocks) {
      if (block.live) all.push_back({pointer(base), block.bytes});
    }
  }
  for (const auto& [base, block] : pinned_) all.push_back({pointer(base), block.bytes});
  return all;
}

void Memory::open() {
  if (users_++ == 0) protect(PROT_READ | PROT_WRITE);
}

void Memory::close() {
  if (--users_ == 0) protect(PROT_NONE);
}

void Memory::protect(int protection) {
  if (front_ == 0 || !guarded_) return;
  if (mprotect(pointer(front_), span_ * arenas_.size(), protection) != 0) {
    violation("cannot change the protection of device memory");
  }
}

} // namespace puone::standin

void standinWatch(const StandinWatcher* watcher) {
  puone::standin::watcher = watcher;
}
