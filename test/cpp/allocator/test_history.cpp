// SPDX-License-Identifier: BSD-3-Clause
// The history: trace entries, stacks, trackers, observers.
#include <c10/util/Exception.h>

#include <atomic>
#include <vector>

#include "check.h"
#include "subject.h"

namespace puone::test {
namespace {

struct Stack final : c10::GatheredContext {};

std::atomic<int> gathered{0};

std::shared_ptr<c10::GatheredContext> gather() {
  ++gathered;
  return std::make_shared<Stack>();
}

void stopRecording() {
  recordMemoryHistory(false, nullptr, 1, RecordContext::NEVER, true);
}

TEST(a_block_and_its_segment_are_traced) {
  const Clean clean;
  const Stream stream = getDefaultStream(0);
  recordMemoryHistory(true, &gather, 100, RecordContext::ALL, true);
  auto block = allocate(1000, stream);
  const auto address = reinterpret_cast<size_t>(block.get());
  const auto snapshot = memorySnapshot();
  block.clear();
  deviceAllocator().emptyCache({0, 0});
  auto entries = memoryTraces().at(0);
  stopRecording();

  CHECK_EQ(static_cast<int>(entries.at(2).action_), static_cast<int>(TraceEntry::SNAPSHOT));
  entries.erase(entries.begin() + 2); // which is of no memory
  const std::vector<TraceEntry::Action> expected{
      TraceEntry::SEGMENT_ALLOC,
      TraceEntry::ALLOC,
      TraceEntry::FREE_REQUESTED,
      TraceEntry::FREE_COMPLETED,
      TraceEntry::SEGMENT_FREE};
  REQUIRE(entries.size() == expected.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    CHECK_EQ(static_cast<int>(entries[i].action_), static_cast<int>(expected[i]));
    CHECK_EQ(entries[i].addr_, address);
    CHECK(entries[i].stream_ == static_cast<void*>(stream.handle()));
    CHECK(entries[i].mempool_ == (c10::MempoolId_t{0, 0}));
    CHECK(i == 0 || entries[i].time_.t_ >= entries[i - 1].time_.t_);
  }
  CHECK_EQ(entries[1].size_, size_t{1024});
  CHECK(entries[1].context_ != nullptr);
  CHECK(entries[2].context_ != nullptr && entries[2].context_ != entries[1].context_);
  REQUIRE(snapshot.size() == 1 && snapshot[0].blocks.size() == 2);
  CHECK(snapshot[0].blocks[0].context_when_allocated == entries[1].context_);
  CHECK(memoryTraces().at(0).empty());
}

TEST(a_free_that_waits_is_traced_twice) {
  const Clean clean;
  const Stream side = getStreamFromPool(0, 0);
  recordMemoryHistory(true, nullptr, 100, RecordContext::NEVER, true);
  auto block = allocate(1000, getDefaultStream(0));
  recordStream(block, side);
  keepBusy(side, std::chrono::milliseconds(50));
  block.clear();
  const auto requested = memoryTraces().at(0);
  deviceAllocator().emptyCache({0, 0});
  const auto completed = memoryTraces().at(0);
  stopRecording();
  CHECK(requested.back().action_ == TraceEntry::FREE_REQUESTED);
  REQUIRE(completed.size() == requested.size() + 2);
  CHECK(completed[requested.size()].action_ == TraceEntry::FREE_COMPLETED);
  CHECK(completed[1].context_ == nullptr);
}

TEST(the_history_keeps_the_latest_entries) {
  const Clean clean;
  const Stream stream = getDefaultStream(0);
  allocate(512, stream).clear();
  recordMemoryHistory(true, nullptr, 4, RecordContext::NEVER, true);
  for (size_t i = 1; i <= 10; ++i) allocate(i * 512, stream).clear();
  const auto entries = memoryTraces().at(0);
  stopRecording();
  REQUIRE(entries.size() == 4);
  CHECK(entries[0].action_ == TraceEntry::FREE_COMPLETED);
  CHECK_EQ(entries[0].size_, size_t{9 * 512});
  CHECK(entries[1].action_ == TraceEntry::ALLOC);
  CHECK(entries[3].action_ == TraceEntry::FREE_COMPLETED);
  CHECK_EQ(entries[3].size_, size_t{10 * 512});
}

TEST(nothing_is_gathered_while_nothing_is_recorded) {
  const Clean clean;
  gathered = 0;
  allocate(512, getDefaultStream(0)).clear();
  CHECK_EQ(gathered.load(), 0);
  CHECK(memoryTraces().at(0).empty());
}

// Trackers and observers cannot be detached: these count what concerns their own device, the last.
TEST(trackers_see_every_entry) {
  const Clean clean;
  static std::atomic<int> allocations{0};
  static std::atomic<int> frees{0};
  attachAllocatorTraceTracker([](const TraceEntry& entry) {
    if (entry.device_ != 2) return;
    allocations += entry.action_ == TraceEntry::ALLOC;
    frees += entry.action_ == TraceEntry::FREE_COMPLETED;
  });
  for (int i = 0; i < 5; ++i) allocate(512, getDefaultStream(2)).clear();
  CHECK_EQ(allocations.load(), 5);
  CHECK_EQ(frees.load(), 5);
}

TEST(observers_are_called_without_a_lock_before_out_of_memory_is_thrown) {
  const Clean clean;
  static std::atomic<int> calls{0};
  static c10::DataPtr kept;
  static size_t size = 0;
  static size_t total = 0;
  kept = allocate(512, getDefaultStream(2));
  attachOutOfMemoryObserver([](int64_t device, size_t bytes, size_t device_total, size_t) {
    if (device != 2) return;
    ++calls;
    size = bytes;
    total = device_total;
    kept.clear(); // all of this would deadlock under the arena's mutex
    allocate(512, getDefaultStream(2)).clear();
    deviceAllocator().getDeviceStats(2);
    deviceAllocator().emptyCache({0, 0});
  });
  recordMemoryHistory(true, nullptr, 100, RecordContext::NEVER, true);
  bool thrown = false;
  try {
    allocate(300 * kMiB, getDefaultStream(2)).clear();
  } catch (const c10::OutOfMemoryError&) {
    thrown = true;
  }
  const auto entries = memoryTraces().at(2);
  stopRecording();
  CHECK(thrown);
  CHECK_EQ(calls.load(), 1);
  CHECK_EQ(size, 300 * kMiB);
  CHECK_EQ(total, 256 * kMiB);
  CHECK(std::ranges::any_of(entries, [](auto& e) { return e.action_ == TraceEntry::OOM; }));
}

} // namespace
} // namespace puone::test
