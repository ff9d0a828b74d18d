// SPDX-License-Identifier: BSD-3-Clause
// The set of live handles, each with 64 bits that the validation layer keeps about it.
//
// Looking up a handle takes no lock and writes nothing, so it takes a few nanoseconds, also on many
// threads at once; inserting and erasing take a lock. The table uses open addressing with linear
// probing. A table that was replaced by a larger one is kept until the set is destroyed, because a
// reader may still use it; all of them together are smaller than the present one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace puone {

class LiveSet {
 public:
  LiveSet() : table_(addTable(kFirstCapacity)) {}
  LiveSet(const LiveSet&) = delete;
  LiveSet& operator=(const LiveSet&) = delete;

  /// Makes a handle live. If it is live already, it gets the new bits.
  void insert(const void* handle, uint64_t bits) {
    const std::lock_guard guard(mutex_);
    if (Slot* slot = find(keyOf(handle))) {
      slot->bits.store(bits, std::memory_order_release);
      return;
    }
    if (4 * (used_ + 1) > 3 * table_.load(std::memory_order_relaxed)->capacity) rebuild();
    place(*table_.load(std::memory_order_relaxed), keyOf(handle), bits);
    ++live_;
  }

  /// The bits of a live handle; nothing for any other pointer.
  std::optional<uint64_t> get(const void* handle) const noexcept {
    const uintptr_t key = keyOf(handle);
    if (key <= kErased) return std::nullopt;
    for (;;) {
      const uint64_t version = version_.load(std::memory_order_acquire);
      if (version % 2 != 0) continue; // being rebuilt, which takes microseconds
      const Slot* const slot = find(key);
      const uint64_t bits = slot != nullptr ? slot->bits.load(std::memory_order_acquire) : 0;
      // It may have been erased meanwhile.
      const bool found = slot != nullptr && slot->key.load(std::memory_order_acquire) == key;
      if (version_.load(std::memory_order_relaxed) != version) continue;
      return found ? std::optional(bits) : std::nullopt;
    }
  }

  /// Sets more of a live handle's bits.
  void add(const void* handle, uint64_t bits) noexcept {
    const std::lock_guard guard(mutex_);
    if (Slot* slot = find(keyOf(handle))) slot->bits.fetch_or(bits, std::memory_order_acq_rel);
  }

  /// Ends a handle. False if it was not live, or if another thread has just ended it.
  bool erase(const void* handle) noexcept {
    const std::lock_guard guard(mutex_);
    Slot* slot = keyOf(handle) <= kErased ? nullptr : find(keyOf(handle));
    if (slot == nullptr) return false;
    slot->key.store(kErased, std::memory_order_release);
    --live_;
    return true;
  }

  void clear() noexcept {
    const std::lock_guard guard(mutex_);
    Table& table = *table_.load(std::memory_order_relaxed);
    for (size_t i = 0; i < table.capacity; ++i) {
      table.slots[i].key.store(kFree, std::memory_order_release);
    }
    used_ = live_ = 0;
  }

  size_t size() const {
    const std::lock_guard guard(mutex_);
    return live_;
  }

  /// Hold the lock during fork(), so that the child finds the set in a consistent state.
  void lock() const {
    mutex_.lock();
  }
  void unlock() const {
    mutex_.unlock();
  }

 private:
  static constexpr size_t kFirstCapacity = 256; // a power of two, like all capacities
  static constexpr uintptr_t kFree = 0;
  static constexpr uintptr_t kErased = 1;

  struct Slot {
    std::atomic<uintptr_t> key{kFree};
    std::atomic<uint64_t> bits{0};
  };
  struct Table {
    explicit Table(size_t n) : capacity(n), slots(new Slot[n]) {}
    const size_t capacity;
    const std::unique_ptr<Slot[]> slots;
  };

  static uintptr_t keyOf(const void* handle) {
    return reinterpret_cast<uintptr_t>(handle);
  }

  static size_t startOf(const Table& table, uintptr_t key) {
    return (uint64_t{key} * 0x9e3779b97f4a7c15u >> 20) & (table.capacity - 1);
  }

  Slot* find(uintptr_t key) const noexcept {
    const Table& table = *table_.load(std::memory_order_acquire);
    const size_t start = startOf(table, key);
    for (size_t i = 0; i < table.capacity; ++i) {
      Slot& slot = table.slots[(start + i) & (table.capacity - 1)];
      const uintptr_t found = slot.key.load(std::memory_order_acquire);
      if (found == key) return &slot;
      if (found == kFree) return nullptr;
    }
    return nullptr;
  }

  /// Inserts into the first slot that holds no live handle. The key must not be in the table.
  void place(Table& table, uintptr_t key, uint64_t bits) noexcept {
    size_t i = startOf(table, key);
    while (table.slots[i].key.load(std::memory_order_relaxed) > kErased) {
      i = (i + 1) & (table.capacity - 1);
    }
    if (table.slots[i].key.load(std::memory_order_relaxed) == kFree) ++used_;
    table.slots[i].bits.store(bits, std::memory_order_release);
    table.slots[i].key.store(key, std::memory_order_release);
  }

  Table* addTable(size_t capacity) {
    tables_.push_back(std::make_unique<Table>(capacity));
    return tables_.back().get();
  }

  /// Drops the erased slots, and doubles the table if it is half full without them.
  void rebuild() {
    Table& old = *table_.load(std::memory_order_relaxed);
    std::vector<std::pair<uintptr_t, uint64_t>> kept;
    kept.reserve(live_);
    for (size_t i = 0; i < old.capacity; ++i) {
      const uintptr_t key = old.slots[i].key.load(std::memory_order_relaxed);
      if (key > kErased) kept.emplace_back(key, old.slots[i].bits.load(std::memory_order_relaxed));
    }
    Table* next = 2 * live_ >= old.capacity ? addTable(2 * old.capacity) : &old;
    version_.fetch_add(1, std::memory_order_acq_rel);
    for (size_t i = 0; next == &old && i < old.capacity; ++i) {
      old.slots[i].key.store(kFree, std::memory_order_release);
    }
    used_ = 0;
    for (const auto& [key, bits] : kept) place(*next, key, bits);
    table_.store(next, std::memory_order_release);
    version_.fetch_add(1, std::memory_order_release);
  }

  mutable std::mutex mutex_; // held by every change
  std::vector<std::unique_ptr<Table>> tables_;
  std::atomic<Table*> table_;
  std::atomic<uint64_t> version_{0}; // odd while the table is rebuilt
  size_t used_ = 0;                  // slots that are not free
  size_t live_ = 0;
};

} // namespace puone
