// SPDX-License-Identifier: BSD-3-Clause
// Device memory for work on one stream, such as a kernel's workspace, from the caching allocator:
// counted, limited, and tried again after the cache was emptied, like a tensor's, but without the
// cost of a DataPtr.
#pragma once

#include <cstddef>
#include <utility>

#include "runtime/stream.h"

namespace puone {

struct Block;

// Owns its memory. Freed in stream order: destroy it as soon as the work that uses it is queued on
// that stream; later work of the stream may get the memory.
class StreamMemory {
 public:
  // Throws c10::OutOfMemoryError. No bytes are a null pointer.
  StreamMemory(size_t bytes, const Stream& stream);
  ~StreamMemory();
  StreamMemory(StreamMemory&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  StreamMemory& operator=(StreamMemory&& other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }

  // A multiple of 512 from the start of the driver's allocation.
  void* get() const noexcept;

 private:
  Block* block_ = nullptr;
};

} // namespace puone
