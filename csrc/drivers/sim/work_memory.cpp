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
/// Maximum number of free chunks; more are returned to the C library.
constexpr size_t kKept = 4096;

/// The list of freed chunks, of all threads.
std::atomic<Header*> freed{nullptr};
std::atomic<size_t> freed_count{0};

/// Chunks that this thread has taken from `freed`. It takes the whole list at once, so that it
/// never removes an element from a list that other threads change.
struct Taken {
  Header* first = nullptr;
  ~Taken() {
    while (first != nullptr) std::free(std::exchange(first, first->next));
  }
};
thread_local Taken taken;

Header* newChunk(size_t bytes) {
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return static_cast<Header*>(memory);
}

Header* recycledChunk() {
  if (taken.first == nullptr) {
    taken.first = freed.exchange(nullptr, std::memory_order_acquire);
    freed_count.store(0, std::memory_order_relaxed);
  }
  return taken.first == nullptr ? newChunk(kChunk) : std::exchange(taken.first, taken.first->next);
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
