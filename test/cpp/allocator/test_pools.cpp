// SPDX-License-Identifier: BSD-3-Clause
// Private pools: the memory of what is captured.
#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "check.h"
#include "runtime/capture.h"
#include "runtime/driver.h"
#include "runtime/event.h"
#include "runtime/generator.h"
#include "subject.h"

namespace puone::test {
namespace {

using std::chrono::milliseconds;

class PlainCapture final : public Capture {
 public:
  using Capture::Capture;
  PhiloxPosition draw(GeneratorImpl&, uint64_t) override {
    TORCH_CHECK(false, "nothing draws here");
  }
  void keep(const c10::Storage&) override {}
};

c10::MempoolId_t newPool() {
  static std::atomic<c10::CaptureId_t> last{0};
  return {0, ++last};
}

/// A graph, or its capture, with memory in a pool.
class Captured {
 public:
  Captured(const Stream& stream, c10::MempoolId_t pool) : stream_(stream), pool_(pool) {
    retainPool(pool_);
    beginCapture(std::make_shared<PlainCapture>(pool_), stream_);
  }
  ~Captured() {
    if (capturing_) end();
    graphApi().destroy(graph_);
    releasePool(pool_);
  }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;

  void end() {
    capturing_ = false;
    graph_ = endCapture(stream_);
    recordDeferredFrees();
  }

 private:
  Stream stream_;
  c10::MempoolId_t pool_;
  bool capturing_ = true;
  puone_graph graph_ = nullptr;
};

void order(const Stream& earlier, const Stream& later) {
  Event event;
  event.record(earlier);
  event.block(later);
}

/// Whether one of many new blocks of the stream begins at `address`.
bool isReused(void* address, const Stream& stream, size_t bytes) {
  std::vector<c10::DataPtr> blocks;
  for (int i = 0; i < 64; ++i) blocks.push_back(allocate(bytes, stream));
  return std::ranges::any_of(blocks, [&](auto& block) { return block.get() == address; });
}

/// A freed block of a capture on the stream.
void* freedInCapture(const Stream& stream, size_t bytes) {
  return allocate(bytes, stream).get();
}

} // namespace

TEST(memory_of_a_capture_is_reused_in_it_and_by_nobody_else) {
  const Clean clean;
  const Stream stream = getStreamFromPool(0, 0);
  Captured graph(stream, newPool());
  void* const address = freedInCapture(stream, 512);
  CHECK(isReused(address, stream, 512));
  graph.end();
  CHECK(!isReused(address, stream, 512));
  deviceAllocator().emptyCache({0, 0});
  CHECK(reserved() > 0);
  CHECK(!isReused(address, stream, 512));
}

TEST(the_cache_is_not_used_by_a_capture) {
  const Clean clean;
  const Stream stream = getStreamFromPool(0, 0);
  void* const cached = allocate(512, stream).get();
  Captured graph(stream, newPool());
  CHECK(!isReused(cached, stream, 512));
  const Stream other = getStreamFromPool(0, 0);
  void* const outside = allocate(512, other).get();
  graph.end();
  CHECK(isReused(cached, stream, 512));
  CHECK(isReused(outside, other, 512));
}

TEST(a_pool_is_kept_while_a_graph_uses_it) {
  const Clean clean;
  const Stream stream = getStreamFromPool(0, 0);
  const auto pool = newPool();
  auto first = std::make_unique<Captured>(stream, pool);
  void* const address = freedInCapture(stream, kMiB);
  first->end();
  {
    Captured second(stream, pool);
    CHECK(isReused(address, stream, kMiB));
    second.end();
    first = nullptr;
    deviceAllocator().emptyCache({0, 0});
    CHECK(reserved() > 0);
  }
  CHECK_EQ(reserved(), 0);
}

TEST(a_block_that_outlives_its_pool_is_the_last_to_go) {
  const Clean clean;
  const Stream stream = getStreamFromPool(0, 0);
  c10::DataPtr block;
  {
    Captured graph(stream, newPool());
    block = allocate(kMiB, stream);
    allocate(30 * kMiB, stream).clear();
  }
  CHECK(reserved() > 0);
  CHECK(reserved() < static_cast<int64_t>(30 * kMiB));
  CHECK_EQ(allocated(), static_cast<int64_t>(kMiB));
  block.clear();
  deviceAllocator().emptyCache({0, 0});
  CHECK_EQ(reserved(), 0);
}

TEST(a_block_that_a_captured_stream_uses_waits_for_the_end_of_the_capture) {
  const Clean clean;
  const Stream main = getStreamFromPool(0, 0);
  const Stream side = getStreamFromPool(0, 0);
  const auto pool = newPool();
  Captured graph(main, pool);
  order(main, side);
  auto block = allocate(512, main);
  void* const address = block.get();
  recordStream(block, side);
  block.clear();
  CHECK_EQ(active(), 512);
  CHECK(!isReused(address, main, 512));
  order(side, main);
  graph.end();
  side.synchronize();
  Captured next(main, pool);
  CHECK(isReused(address, main, 512));
  CHECK_EQ(active(), 0);
}

TEST(a_block_from_before_the_capture_can_be_freed_in_it) {
  const Clean clean;
  const Stream main = getStreamFromPool(0, 0);
  const Stream side = getStreamFromPool(0, 0);
  auto block = allocate(512, side);
  void* const address = block.get();
  recordStream(block, main);
  keepBusy(main, milliseconds(30));
  Captured graph(main, newPool());
  block.clear();
  CHECK(!isReused(address, side, 512));
  graph.end();
  CHECK(!isReused(address, side, 512)); // what was queued before the capture still runs
  main.synchronize();
  CHECK(isReused(address, side, 512));
}

TEST(running_out_of_memory_in_a_capture_frees_the_cache_and_not_the_pool) {
  const Clean clean;
  const Stream stream = getStreamFromPool(0, 0);
  const Stream other = getStreamFromPool(0, 0);
  allocate(100 * kMiB, other).clear();
  Captured graph(stream, newPool());
  void* const captured = freedInCapture(stream, 50 * kMiB);
  auto large = allocate(150 * kMiB, stream); // fits when the cache is empty
  bool thrown = false;
  try {
    allocate(200 * kMiB, stream).clear();
  } catch (const c10::OutOfMemoryError&) {
    thrown = true;
  }
  CHECK(thrown);
  CHECK_EQ(allocate(50 * kMiB, stream).get(), captured);
}

TEST(captures_follow_each_other_beside_threads_that_allocate) {
  const Clean clean;
  const Stream stream = getStreamFromPool(0, 0);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      const Stream own = getStreamFromPool(0, 0);
      const Stream shared = getDefaultStream(0);
      while (!stop) {
        auto block = allocate(512 << i, own);
        recordStream(block, shared);
        block.clear();
        allocate(kMiB, shared).clear();
      }
    });
  }
  for (int turn = 0; turn < 30; ++turn) {
    Captured graph(stream, newPool());
    auto kept = allocate(512, stream);
    for (size_t bytes = 512; bytes <= 4 * kMiB; bytes *= 4) allocate(bytes, stream).clear();
    graph.end();
    deviceAllocator().emptyCache({0, 0});
  }
  stop = true;
  for (auto& thread : threads) thread.join();
}

} // namespace puone::test
