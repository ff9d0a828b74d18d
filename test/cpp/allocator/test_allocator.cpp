// SPDX-License-Identifier: BSD-3-Clause
// Errors of the driver, waiting, and memory without a DataPtr.
#include <c10/core/AllocatorConfig.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "check.h"
#include "runtime/device.h"
#include "runtime/stream_memory.h"
#include "subject.h"

namespace puone::test {
namespace {

using std::chrono::milliseconds;

/// Whether one of many new blocks of the stream begins at `address`.
bool isReused(void* address, const Stream& stream, size_t bytes) {
  std::vector<c10::DataPtr> blocks;
  for (int i = 0; i < 64; ++i) blocks.push_back(allocate(bytes, stream));
  return std::ranges::any_of(blocks, [&](auto& block) { return block.get() == address; });
}

TEST(a_block_whose_event_cannot_be_recorded_is_held) {
  const Clean clean;
  const Stream main = getDefaultStream(0);
  const Stream side = getStreamFromPool(0, 0);
  auto before = allocate(512, main);
  auto block = allocate(512, main);
  auto behind = allocate(512, main);
  void* const address = block.get();
  recordStream(block, side);
  fault().device_lost(0);
  block.clear();
  fault().reset();
  before.clear(); // its neighbours are free now, and must not take it in
  behind.clear();
  CHECK_EQ(allocated(), 0);
  CHECK_EQ(active(), 512);
  CHECK(!isReused(address, main, 512));
  CHECK(!isReused(address, main, 1024));
  CHECK_EQ(active(), 512);
  // Emptying the cache waits for the stream, and the memory is usable again.
  deviceAllocator().emptyCache({0, 0});
  CHECK_EQ(active(), 0);
  CHECK_EQ(reserved(), 0);
}

TEST(an_event_that_cannot_be_queried_does_not_stop_allocation) {
  const Clean clean;
  const Stream main = getDefaultStream(0);
  const Stream side = getStreamFromPool(0, 0);
  auto block = allocate(512, main);
  void* const address = block.get();
  recordStream(block, side);
  keepBusy(side, milliseconds(20));
  block.clear();
  fault().device_lost(0);
  for (int i = 0; i < 3; ++i) CHECK(allocate(512, main).get() != address);
  fault().reset();
  CHECK(!isReused(address, main, 512));
  CHECK_EQ(active(), 512);
}

TEST(an_asynchronous_error_is_thrown_once_and_loses_no_block) {
  const Clean clean;
  const Stream main = getDefaultStream(0);
  const Stream side = getStreamFromPool(0, 0);
  auto block = allocate(512, main);
  recordStream(block, side);
  fault().kernel_error_at(1);
  keepBusy(side, milliseconds(1));
  block.clear();
  int thrown = 0;
  for (int i = 0; i < 200 && active() > 0; ++i) {
    try {
      allocate(512, main).clear();
    } catch (const c10::Error&) {
      ++thrown;
    }
    std::this_thread::sleep_for(milliseconds(5));
  }
  CHECK_EQ(thrown, 1);
  CHECK_EQ(active(), 0);
}

TEST(blocks_return_in_the_order_of_each_stream) {
  const Clean clean;
  const Stream main = getDefaultStream(0);
  const Stream slow = getStreamFromPool(0, 0);
  const Stream fast = getStreamFromPool(0, 0);
  auto for_slow = allocate(512, main);
  auto for_fast = allocate(512, main);
  void* const slow_address = for_slow.get();
  void* const fast_address = for_fast.get();
  recordStream(for_slow, slow);
  recordStream(for_fast, fast);
  keepBusy(slow, milliseconds(300));
  for_slow.clear();
  for_fast.clear();
  fast.synchronize();
  CHECK(isReused(fast_address, main, 512));
  CHECK(!isReused(slow_address, main, 512));
  slow.synchronize();
  CHECK(isReused(slow_address, main, 512));
}

TEST(nothing_waits_while_a_cache_is_emptied) {
  const Clean clean;
  const Stream main = getDefaultStream(0);
  const Stream side = getStreamFromPool(0, 0);
  const Stream other_device = getDefaultStream(1);
  auto shared = allocate(kMiB, main);
  auto cached = allocate(kMiB, main);
  auto elsewhere = allocate(512, other_device);
  recordStream(shared, side);
  keepBusy(side, milliseconds(500));
  shared.clear();
  std::thread emptying([] { deviceAllocator().emptyCache({0, 0}); });
  std::this_thread::sleep_for(milliseconds(50)); // it waits for `side` now
  const auto time = timeOf([&] {
    elsewhere.clear();
    cached.clear();
    allocate(512, main).clear();
    allocate(512, other_device).clear();
    deviceAllocator().getDeviceStats(0);
    memorySnapshot();
  });
  CHECK(!side.query());
  CHECK(time < milliseconds(300));
  emptying.join();
}

TEST(a_failed_empty_cache_keeps_its_segments) {
  const Clean clean;
  allocate(kMiB, getDefaultStream(0)).clear();
  const auto before = reserved();
  fault().device_lost(0);
  bool failed = false;
  try {
    deviceAllocator().emptyCache({0, 0});
  } catch (const c10::Error&) {
    failed = true;
  }
  fault().reset();
  CHECK(!failed || reserved() == before);
}

TEST(memory_of_a_stream_is_counted_reused_and_limited) {
  const Clean clean;
  const Stream stream = getStreamFromPool(0, 1);
  void* first = nullptr;
  {
    const StreamMemory memory(3000, stream);
    first = memory.get();
    CHECK(first != nullptr);
    CHECK_EQ(allocated(1), 3072);
    const StreamMemory none(0, stream);
    CHECK(none.get() == nullptr);
  }
  CHECK_EQ(allocated(1), 0);
  CHECK(StreamMemory(3000, stream).get() == first);

  setMemoryFraction(0.25, 1); // 64 of 256 MiB
  bool refused = false;
  try {
    const StreamMemory memory(80 * kMiB, stream);
  } catch (const c10::OutOfMemoryError&) {
    refused = true;
  }
  CHECK(refused);
  // What another stream's cache holds is given back first.
  allocate(50 * kMiB, getDefaultStream(1)).clear();
  CHECK(StreamMemory(60 * kMiB, stream).get() != nullptr);
  setMemoryFraction(1.0, 1);
}

TEST(the_limit_holds_for_threads_together) {
  const Clean clean;
  setMemoryFraction(0.25, 0); // 64 MiB
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      const Stream stream = getStreamFromPool(0, 0);
      for (int k = 0; k < 20; ++k) {
        try {
          allocate(30 * kMiB, stream).clear();
        } catch (const c10::OutOfMemoryError&) {
          // the others have it
        }
        CHECK(reserved() <= static_cast<int64_t>(64 * kMiB));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  setMemoryFraction(1.0, 0);
}

TEST(oversize_blocks_are_returned_beside_other_threads) {
  const Clean clean;
  c10::CachingAllocator::setAllocatorSettings("max_split_size_mb:20");
  setMemoryFraction(0.5, 0); // 128 MiB
  std::atomic<bool> begun{false};
  std::atomic<bool> ended{false};
  std::thread other([&] {
    while (!ended) {
      allocate(2 * kMiB, getDefaultStream(0)).clear();
      begun = true;
    }
  });
  while (!begun) std::this_thread::yield();
  for (int round = 0; round < 1000; ++round) {
    allocate(90 * kMiB, getDefaultStream(0)).clear();
    allocate(60 * kMiB, getDefaultStream(0)).clear(); // in the place of the larger one
    CHECK(reserved() < static_cast<int64_t>(128 * kMiB));
  }
  ended = true;
  other.join();
  setMemoryFraction(1.0, 0);
  c10::CachingAllocator::setAllocatorSettings("");
}

TEST(threads_that_find_nothing_free_share_a_segment) {
  const Clean clean;
  const Stream stream = getDefaultStream(0);
  std::vector<std::thread> threads;
  std::vector<c10::DataPtr> blocks(4);
  for (auto& block : blocks) {
    threads.emplace_back([&] { block = allocate(512, stream); });
  }
  for (auto& thread : threads) thread.join();
  CHECK_EQ(reserved(), static_cast<int64_t>(2 * kMiB));
}

TEST(copy_on_write_can_take_the_memory_back) {
  // c10's copy-on-write asserts that the context of a DataPtr is its address.
  const Clean clean;
  auto block = allocate(512, getDefaultStream(0));
  CHECK(block.get() == block.get_context());
  CHECK(deviceAllocator().is_simple_data_ptr(block));
  void* const raw = deviceAllocator().raw_allocate(512);
  CHECK(raw != nullptr);
  deviceAllocator().raw_deallocate(raw);
}

TEST(a_reset_counts_from_zero_and_keeps_what_is_allocated) {
  const Clean clean;
  const Stream main = getDefaultStream(0);
  auto first = allocate(512, main);
  auto second = allocate(1024, main);
  deviceAllocator().resetAccumulatedStats(0);
  deviceAllocator().resetPeakStats(0);
  second.clear();
  auto third = allocate(4096, main);
  third.clear();
  const auto small = deviceAllocator().getDeviceStats(0).allocated_bytes[1];
  CHECK_EQ(small.current, 512);
  CHECK_EQ(small.allocated, 4096);
  CHECK_EQ(small.freed, 1024 + 4096);
  CHECK_EQ(small.peak, 512 + 4096);
  first.clear();
  deviceAllocator().emptyCache({0, 0});
  deviceAllocator().resetAccumulatedStats(0); // segments too are counted from zero
}

} // namespace
} // namespace puone::test
