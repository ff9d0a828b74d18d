// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/sim/work_memory.h"

#include <atomic>
#include <cstdlib>
#include <new>
#include <utility>

namespace puone::sim {
namespace {

/// The header of a chunk.
struct alignas(std::max_align_t) Header {
  Header* next;
  bool recycled; // has kChunk bytes, header included; other sizes are freed by the C library
};

/// Large enough for an elementwise launch, the most frequent work.
constexpr size_t kChunk = 2048;
/// Maximum number of free chunks in the shared list; more are returned to the C library.
constexpr size_t kKept = 4096;
/// Maximum number of chunks that a thread keeps of those that it has freed itself.
constexpr size_t kOwn = 16;

/// The list of freed chunks, of all threads.
std::atomic<Header*> freed{nullptr};
std::atomic<size_t> freed_count{0};

/// Free chunks that only this thread uses. A thread that synchronises often runs and frees the work
/// that it has queued itself: these chunks need no atomic operation. If there are none, it takes
/// the whole shared list at once, so that it never removes an element from a list that other
/// threads change.
struct Own {
  Header* first = nullptr;
  size_t freed_here = 0;
  bool is_usable = false; // between the construction of its owner and the end of the thread

  Header* take() {
    if (freed_here > 0) --freed_here;
    return std::exchange(first, first->next);
  }
  bool keep(Header* chunk) {
    if (!is_usable || freed_here >= kOwn) return false;
    ++freed_here;
    chunk->next = std::exchange(first, chunk);
    return true;
  }
};
/// Without a constructor or a destructor, so that an access is one address and no check.
thread_local Own own;

/// Frees the chunks at the end of the thread.
struct Owner {
  explicit Owner(Own& mine) : mine_(mine) {
    mine.is_usable = true;
  }
  ~Owner() {
    mine_.is_usable = false;
    while (mine_.first != nullptr) std::free(std::exchange(mine_.first, mine_.first->next));
  }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

 private:
  Own& mine_;
};

Header* newChunk(size_t bytes) {
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return static_cast<Header*>(memory);
}

__attribute__((noinline)) void takeShared(Own& mine) {
  thread_local const Owner owner(mine);
  mine.first = freed.exchange(nullptr, std::memory_order_acquire);
  freed_count.store(0, std::memory_order_relaxed);
}

Header* recycledChunk() {
  Own& mine = own;
  if (mine.first == nullptr) takeShared(mine);
  return mine.first == nullptr ? newChunk(kChunk) : mine.take();
}

} // namespace

void* allocateWork(size_t bytes) {
#ifdef PUONE_SANITIZED // the sanitizers watch malloc() and free()
  const bool recycled = false;
#else
  const bool recycled = bytes <= kChunk - sizeof(Header);
#endif
  Header* header = recycled ? recycledChunk() : newChunk(bytes + sizeof(Header));
  header->recycled = recycled;
  return header + 1;
}

void freeWork(void* memory) noexcept {
  Header* header = static_cast<Header*>(memory) - 1;
  if (header->recycled && own.keep(header)) return;
  if (!header->recycled || freed_count.fetch_add(1, std::memory_order_relaxed) >= kKept) {
    std::free(header);
    return;
  }
  header->next = freed.load(std::memory_order_relaxed);
  while (!freed.compare_exchange_weak(
      header->next, header, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

} // namespace puone::sim
