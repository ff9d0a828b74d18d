// SPDX-License-Identifier: BSD-3-Clause
#include "aten/core/fallback_registry.h"

#include <ATen/core/dispatch/OperatorEntry.h>
#include <ATen/core/dispatch/RegistrationHandleRAII.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <shared_mutex>

#include "aten/core/fallback.h"

namespace puone {
namespace {

class Registry {
 public:
  const FallbackPlan& book(const c10::OperatorHandle& op) {
    Entry& entry = find(op);
    entry.calls.fetch_add(1, std::memory_order_relaxed);
    return entry.plan;
  }

  // A later operator may get the same handle, and another schema.
  void forget(const c10::OperatorHandle& op) {
    const std::unique_lock lock(mutex_);
    const auto it = entries_.find(op);
    if (it == entries_.end()) return;
    addCalls(*it->second, forgotten_);
    entries_.erase(it);
  }

  std::unordered_map<std::string, uint64_t> counts() {
    const std::shared_lock lock(mutex_);
    auto result = forgotten_;
    for (const auto& [op, entry] : entries_) addCalls(*entry, result);
    return result;
  }

  void reset() {
    const std::unique_lock lock(mutex_);
    forgotten_.clear();
    for (const auto& [op, entry] : entries_) entry->calls = 0;
  }

 private:
  struct Entry {
    explicit Entry(const c10::OperatorHandle& op) : plan(op) {}
    const FallbackPlan plan;
    std::atomic<uint64_t> calls{0};
  };

  static void addCalls(const Entry& entry, std::unordered_map<std::string, uint64_t>& counts) {
    const uint64_t calls = entry.calls.load(std::memory_order_relaxed);
    if (calls != 0) counts[entry.plan.name] += calls;
  }

  Entry& find(const c10::OperatorHandle& op) {
    {
      const std::shared_lock lock(mutex_);
      const auto it = entries_.find(op);
      if (C10_LIKELY(it != entries_.end())) return *it->second;
    }
    auto entry = std::make_unique<Entry>(op);
    const std::unique_lock lock(mutex_);
    return *entries_.try_emplace(op, std::move(entry)).first->second;
  }

  std::shared_mutex mutex_;
  std::unordered_map<c10::OperatorHandle, std::unique_ptr<Entry>> entries_;
  std::unordered_map<std::string, uint64_t> forgotten_; // calls of operators that are gone
};

class Forgetter final : public c10::OpRegistrationListener {
 public:
  explicit Forgetter(Registry& registry) : registry_(registry) {}
  void onOperatorRegistered(const c10::OperatorHandle& /*op*/) override {}
  void onOperatorDeregistered(const c10::OperatorHandle& op) override {
    registry_.forget(op);
  }

 private:
  Registry& registry_;
};

// Leaked, with its listener: operators may run, and be deregistered, until the process ends.
Registry& registry() {
  static Registry* instance = [] {
    auto* registry = new Registry;
    new c10::RegistrationHandleRAII(
        c10::Dispatcher::singleton().addRegistrationListener(
            std::make_unique<Forgetter>(*registry)));
    return registry;
  }();
  return *instance;
}

} // namespace

const FallbackPlan& bookFallback(const c10::OperatorHandle& op) {
  return registry().book(op);
}

std::unordered_map<std::string, uint64_t> fallbackCounts() {
  return registry().counts();
}

void resetFallbackCounts() {
  registry().reset();
}

} // namespace puone
