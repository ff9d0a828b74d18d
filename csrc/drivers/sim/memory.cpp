// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/sim/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "drivers/common/error.h"

namespace puone::sim {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kGuard = kPage;
constexpr size_t kHostAlignment = 256;

constexpr size_t roundUp(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

uintptr_t address(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}
void* pointer(uintptr_t address) {
  return reinterpret_cast<void*>(address);
}

} // namespace

Memory::Memory(int32_t devices, uint64_t capacity, bool poison)
    : capacity_(roundUp(capacity, kPage)), poison_(poison), arenas_(devices) {
  if (devices == 0) return;
  // Address space beyond the capacity is for guard pages and for delaying the reuse of addresses.
  // If address space is scarce (ulimit -v, valgrind), use less.
  void* base = MAP_FAILED;
  for (uint64_t room = 4; base == MAP_FAILED && room > 0; room /= 2) {
    span_ = roundUp(room * capacity_ + kHugePage, kHugePage);
    offset_ = span_ * static_cast<size_t>(devices);
    // One additional huge page, so that the front half can start at a huge page.
    base = mmap(
        nullptr,
        2 * offset_ + kHugePage,
        PROT_NONE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
        -1,
        0);
  }
  if (base == MAP_FAILED) {
    fail(
        PUONE_INTERNAL,
        "cannot reserve %s of address space for %d devices of %s: %s",
        humanBytes(2 * offset_).c_str(),
        devices,
        humanBytes(capacity).c_str(),
        std::strerror(errno));
  }
  front_ = roundUp(address(base), kHugePage);
  uintptr_t end = address(base) + 2 * offset_ + kHugePage;
  if (front_ > address(base)) munmap(base, front_ - address(base));
  if (end > front_ + 2 * offset_) munmap(pointer(front_ + 2 * offset_), end - front_ - 2 * offset_);
  for (int32_t device = 0; device < devices; ++device) {
    uintptr_t low = front_ + span_ * static_cast<size_t>(device);
    arenas_[device].free.emplace(low + kGuard, span_ - kGuard);
    arenas_[device].cursor = low;
  }
}

Memory::~Memory() {
  if (offset_ != 0) munmap(pointer(front_), 2 * offset_);
  for (const auto& [base, bytes] : pinned_) releaseHost(pointer(base));
}

uintptr_t Memory::reserve(Arena& arena, size_t pages) {
  // Large blocks end at a huge page; if their size is a multiple of it, they also start at one.
  const size_t multiple = pages >= kHugePage ? kHugePage : kPage;
  const auto take = [&](Ranges::iterator range, uintptr_t from) -> uintptr_t {
    const auto [begin, bytes] = *range;
    const uintptr_t low = roundUp(std::max(begin, from) + pages, multiple) - pages;
    const uintptr_t high = low + pages + kGuard;
    if (high > begin + bytes) return 0;
    // First what can throw.
    if (high < begin + bytes) arena.free.emplace(high, begin + bytes - high);
    if (low > begin) {
      range->second = low - begin;
    } else {
      arena.free.erase(range);
    }
    arena.cursor = high;
    return low;
  };
  // Search upwards from the cursor, starting in the range that contains it, then from the bottom.
  auto range = arena.free.upper_bound(arena.cursor);
  if (range != arena.free.begin()) {
    if (const uintptr_t low = take(std::prev(range), arena.cursor)) return low;
  }
  for (size_t left = arena.free.size(); left > 0; --left, ++range) {
    if (range == arena.free.end()) range = arena.free.begin();
    if (const uintptr_t low = take(range, 0)) return low;
  }
  return 0;
}

void Memory::unreserve(Arena& arena, uintptr_t low, size_t pages) {
  size_t bytes = pages + kGuard;
  auto next = arena.free.lower_bound(low);
  if (next != arena.free.end() && next->first == low + bytes) {
    bytes += next->second;
    next = arena.free.erase(next);
  }
  if (next != arena.free.begin()) {
    auto previous = std::prev(next);
    if (previous->first + previous->second == low) {
      previous->second += bytes;
      return;
    }
  }
  arena.free.emplace(low, bytes);
}

uintptr_t Memory::reserveOn(int32_t device, size_t pages) {
  if (const uintptr_t low = reserve(arenas_[device], pages)) return low;
  fail(
      PUONE_OUT_OF_MEMORY,
      "puone:%d: no contiguous %s, though %s are free of %s",
      device,
      humanBytes(pages).c_str(),
      humanBytes(capacity_ - arenas_[device].used).c_str(),
      humanBytes(capacity_).c_str());
}

void* Memory::allocate(int32_t device, size_t bytes) {
  const std::lock_guard guard(mutex_);
  Arena& arena = arenas_[device];
  const uint64_t available = capacity_ - arena.used;
  if (bytes > available || roundUp(bytes, kPage) > available) {
    fail(
        PUONE_OUT_OF_MEMORY,
        "puone:%d: tried to allocate %s, %s free of %s",
        device,
        humanBytes(bytes).c_str(),
        humanBytes(available).c_str(),
        humanBytes(capacity_).c_str());
  }
  // The table's entry is made first, so that nothing throws once the block exists.
  Blocks made;
  made.try_emplace(0);
  auto entry = made.extract(made.begin());
  const size_t pages = roundUp(bytes, kPage);
  const uintptr_t low = reserveOn(device, pages);
  if (mprotect(pointer(low + offset_), pages, PROT_READ | PROT_WRITE) != 0) {
    const int error = errno;
    unreserve(arena, low, pages);
    fail(
        PUONE_OUT_OF_MEMORY,
        "puone:%d: the host refused %s: %s (errno %d; each block takes two "
        "of the process's memory mappings, see vm.max_map_count)",
        device,
        humanBytes(bytes).c_str(),
        std::strerror(error),
        error);
  }
  if (pages >= kHugePage) madvise(pointer(low + offset_), pages, MADV_HUGEPAGE);
  const uintptr_t base = low + pages - roundUp(bytes, kAlignment);
  entry.key() = base;
  entry.mapped() = {low, pages, bytes, device};
  blocks_.insert(std::move(entry));
  arena.used += pages;
  if (poison_) std::memset(pointer(low + offset_), kPoison, pages);
  return pointer(base);
}

Memory::Retired Memory::retire(void* base) {
  const std::lock_guard guard(mutex_);
  const auto found = blocks_.find(address(base));
  Block& block = found->second;
  Retired retired{block.device, block.low, block.pages, block.imported, std::move(block.file)};
  blocks_.erase(found);
  return retired;
}

void Memory::release(const Retired& block) {
  // Map PROT_NONE over the pages: they return to the host, a late access faults, and the kernel
  // merges the mapping with the guards next to it, so that the number of mappings stays small.
  void* backing = pointer(block.low + offset_);
  if (mmap(
          backing,
          block.bytes,
          PROT_NONE,
          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
          -1,
          0) == MAP_FAILED) {
    // The limit of mappings is reached: at least return the pages.
    madvise(backing, block.bytes, MADV_DONTNEED);
  }
  const std::lock_guard guard(mutex_);
  Arena& arena = arenas_[block.device];
  if (!block.imported) arena.used -= block.bytes;
  unreserve(arena, block.low, block.bytes);
}

// ---- memory of several processes ----

namespace {

/// Maps the file over a range of backing store.
bool mapOver(uintptr_t backing, const SharedFile& file, size_t pages) {
  const int access = PROT_READ | PROT_WRITE;
  const int flags = MAP_SHARED | MAP_FIXED;
  return mmap(pointer(backing), pages, access, flags, file.descriptor(), 0) != MAP_FAILED;
}

bool writeAll(const SharedFile& file, uintptr_t from, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t written =
        pwrite(file.descriptor(), pointer(from + done), bytes - done, static_cast<off_t>(done));
    if (written <= 0) return false;
    done += static_cast<size_t>(written);
  }
  return true;
}

} // namespace

Memory::Shared Memory::share(void* base) {
  const std::lock_guard guard(mutex_);
  Block& block = blocks_.find(address(base))->second;
  if (block.imported) {
    fail(PUONE_INVALID_ARGUMENT, "%p is memory of another process, which can export it", base);
  }
  if (!block.file) {
    SharedFile file = SharedFile::create("puone sim memory", block.pages);
    const uintptr_t backing = block.low + offset_;
    if (!file || !writeAll(file, backing, block.pages) || !mapOver(backing, file, block.pages)) {
      fail(
          PUONE_OUT_OF_MEMORY,
          "the host refused %s of memory that processes can share: %s",
          humanBytes(block.pages).c_str(),
          std::strerror(errno));
    }
    block.file = std::move(file);
  }
  return {block.file.name(), block.pages, block.bytes, block.device};
}

void* Memory::import(const Shared& shared) {
  SharedFile file = SharedFile::open(shared.file);
  if (!file) {
    fail(
        PUONE_INVALID_ARGUMENT,
        "cannot open the memory of process %d: %s",
        shared.file.process,
        errno == ESTALE ? "it was freed, or the process has ended" : std::strerror(errno));
  }
  if (file.bytes() != shared.pages || roundUp(shared.bytes, kPage) != shared.pages) {
    fail(PUONE_INVALID_ARGUMENT, "the handle names %zu bytes that are not there", shared.pages);
  }
  const std::lock_guard guard(mutex_);
  for (const auto& [base, block] : blocks_) {
    if (!block.file || block.file.inode() != shared.file.inode) continue;
    fail(
        PUONE_INVALID_ARGUMENT,
        "the handle names the block %p, which %s",
        pointer(base),
        block.imported ? "is mapped already" : "is of this process");
  }
  Blocks made;
  made.try_emplace(0);
  auto entry = made.extract(made.begin());
  const uintptr_t low = reserveOn(shared.device, shared.pages);
  if (!mapOver(low + offset_, file, shared.pages)) {
    const int error = errno;
    unreserve(arenas_[shared.device], low, shared.pages);
    fail(
        PUONE_OUT_OF_MEMORY,
        "puone:%d: the host refused to map %s: %s",
        shared.device,
        humanBytes(shared.pages).c_str(),
        std::strerror(error));
  }
  const uintptr_t base = low + shared.pages - roundUp(shared.bytes, kAlignment);
  entry.key() = base;
  entry.mapped() = {low, shared.pages, shared.bytes, shared.device, true, std::move(file)};
  blocks_.insert(std::move(entry));
  return pointer(base);
}

void* Memory::allocateHost(size_t bytes) {
  if (bytes > SIZE_MAX / 2) {
    fail(PUONE_OUT_OF_MEMORY, "tried to allocate %s of pinned memory", humanBytes(bytes).c_str());
  }
  void* base = std::aligned_alloc(kHostAlignment, roundUp(bytes, kHostAlignment));
  if (base == nullptr) {
    fail(PUONE_OUT_OF_MEMORY, "tried to allocate %s of pinned memory", humanBytes(bytes).c_str());
  }
  try {
    const std::lock_guard guard(mutex_);
    pinned_.emplace(address(base), bytes);
  } catch (...) {
    releaseHost(base);
    throw;
  }
  return base;
}

void Memory::retireHost(void* base) {
  const std::lock_guard guard(mutex_);
  pinned_.erase(address(base));
}

void Memory::releaseHost(void* base) {
  std::free(base);
}

Memory::Blocks::const_iterator Memory::findBlock(uintptr_t address) const {
  auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return blocks_.end();
  const auto found = std::prev(after);
  return address - found->first < found->second.bytes ? found : blocks_.end();
}

Memory::Pinned::const_iterator Memory::findPinned(uintptr_t address) const {
  auto after = pinned_.upper_bound(address);
  if (after == pinned_.begin()) return pinned_.end();
  const auto found = std::prev(after);
  return address - found->first < found->second ? found : pinned_.end();
}

puone_pointer_attributes Memory::attributes(const void* p) const {
  const std::lock_guard guard(mutex_);
  if (isDevice(p)) {
    const auto block = findBlock(address(p));
    if (block != blocks_.end()) {
      const auto& [base, found] = *block;
      return {0, PUONE_MEMORY_DEVICE, found.device, 0, pointer(base), found.bytes};
    }
  } else if (const auto pinned = findPinned(address(p)); pinned != pinned_.end()) {
    return {0, PUONE_MEMORY_HOST, -1, 0, pointer(pinned->first), pinned->second};
  }
  return {0, PUONE_MEMORY_UNREGISTERED, -1, 0, nullptr, 0};
}

uint64_t Memory::freeBytes(int32_t device) const {
  const std::lock_guard guard(mutex_);
  return capacity_ - arenas_[device].used;
}

void* Memory::resolve(const void* p) const {
  if (isDevice(p)) return pointer(address(p) + offset_);
  const std::lock_guard guard(mutex_);
  if (findPinned(address(p)) == pinned_.end()) {
    fail(PUONE_INTERNAL, "%p is neither device nor pinned memory", p);
  }
  return const_cast<void*>(p);
}

} // namespace puone::sim
