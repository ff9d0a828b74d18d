// SPDX-License-Identifier: BSD-3-Clause
// Opaque handles that can be told dead from alive.
//
// A handle is not a pointer but a slot number, a generation and a tag packed into one: a destroyed
// handle, a handle of another kind or a wild one is found out instead of being followed.
// Not thread-safe: the driver's lock guards it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "drivers/common/error.h"

namespace puone {

template <class T>
class HandleTable {
 public:
  /// `tag` in 1..15 tells this table's handles from the others'; `what` names them in errors.
  HandleTable(uint32_t tag, const char* what) : tag_(tag), what_(what) {}

  void* add(std::shared_ptr<T> object) {
    if (free_.empty()) {
      slots_.emplace_back();
      free_.reserve(slots_.size()); // so that remove() cannot throw
      free_.push_back(static_cast<uint32_t>(slots_.size() - 1));
    }
    const uint32_t index = free_.back();
    free_.pop_back();
    slots_[index].object = std::move(object);
    return encode(index);
  }

  const std::shared_ptr<T>& get(const void* handle) const {
    return slots_[decode(handle)].object;
  }

  /// Ends the handle and returns what it stood for.
  std::shared_ptr<T> remove(const void* handle) {
    const uint32_t index = decode(handle);
    Slot& slot = slots_[index];
    ++slot.generation;
    free_.push_back(index);
    return std::move(slot.object);
  }

  size_t size() const {
    return slots_.size() - free_.size();
  }

 private:
  struct Slot {
    std::shared_ptr<T> object;
    uint32_t generation = 1;
  };

  // generation (32 bits) | slot (28 bits) | tag (4 bits)
  void* encode(uint32_t index) const {
    const uint64_t bits = uint64_t{slots_[index].generation} << 32 | uint64_t{index} << 4 | tag_;
    return reinterpret_cast<void*>(bits);
  }

  uint32_t decode(const void* handle) const {
    const auto bits = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(handle));
    const auto index = static_cast<uint32_t>(bits >> 4 & 0x0fff'ffff);
    if (handle == nullptr) fail(PUONE_INVALID_ARGUMENT, "%s is NULL", what_);
    if ((bits & 0xf) != tag_ || index >= slots_.size()) {
      fail(PUONE_INVALID_ARGUMENT, "%p is not a %s", handle, what_);
    }
    const Slot& slot = slots_[index];
    if (slot.object == nullptr || slot.generation != bits >> 32) {
      fail(PUONE_INVALID_ARGUMENT, "%s %p has been destroyed", what_, handle);
    }
    return index;
  }

  const uint32_t tag_;
  const char* const what_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
};

} // namespace puone
