// SPDX-License-Identifier: BSD-3-Clause
// Threads that allocate, free, record and empty over several devices and streams, while the driver
// runs out of memory and loses a device.
#include <c10/util/Exception.h>

#include <atomic>
#include <mutex>
#include <random>
#include <set>
#include <vector>

#include "check.h"
#include "runtime/device.h"
#include "runtime/stream_memory.h"
#include "subject.h"

namespace puone::test {
namespace {

/// The live ranges of all devices: no two may share a byte.
class Live {
 public:
  void add(const void* ptr, size_t bytes) {
    const auto begin = reinterpret_cast<uintptr_t>(ptr);
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto next = ranges_.lower_bound({begin, 0});
    CHECK(next == ranges_.end() || begin + bytes <= next->first);
    CHECK(next == ranges_.begin() || std::prev(next)->second <= begin);
    ranges_.insert({begin, begin + bytes});
  }
  void remove(const void* ptr, size_t bytes) {
    const auto begin = reinterpret_cast<uintptr_t>(ptr);
    const std::lock_guard<std::mutex> lock(mutex_);
    CHECK_EQ(ranges_.erase({begin, begin + bytes}), size_t{1});
  }

 private:
  std::mutex mutex_;
  std::set<std::pair<uintptr_t, uintptr_t>> ranges_;
};

struct Held {
  c10::DataPtr memory;
  size_t bytes;
};

/// Blocks that one thread allocated and another one frees.
struct Exchange {
  std::mutex mutex;
  std::vector<Held> blocks;
};

class Worker {
 public:
  Worker(int seed, Live& live, Exchange& exchange)
      : random_(static_cast<unsigned>(seed)), live_(live), exchange_(exchange) {
    for (c10::DeviceIndex device = 0; device < deviceCount(); ++device) {
      streams_.push_back(getDefaultStream(device));
      streams_.push_back(getStreamFromPool(0, device));
      streams_.push_back(getStreamFromPool(0, device));
    }
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      try {
        step();
      } catch (const c10::Error&) {
        // out of memory or a lost device, as planted
      }
    }
    while (!held_.empty()) free(below(held_.size()));
  }

 private:
  size_t below(size_t bound) {
    return random_() % bound;
  }
  const Stream& anyStream() {
    return streams_[below(streams_.size())];
  }

  void step() {
    const size_t dice = below(100);
    if (dice < 50) {
      add();
    } else if (dice < 85) {
      if (!held_.empty()) free(below(held_.size()));
    } else if (dice < 92) {
      const StreamMemory workspace(1 + below(2 * kMiB), anyStream());
    } else if (dice < 96) {
      swap();
    } else if (dice < 98) {
      deviceAllocator().getDeviceStats(0);
      memorySnapshot();
    } else {
      deviceAllocator().emptyCache({0, 0});
    }
  }

  void add() {
    const size_t bytes = below(8) == 0 ? 1 + below(6 * kMiB) : 1 + below(20000);
    const Stream& stream = anyStream();
    Held held{allocate(bytes, stream), bytes};
    live_.add(held.memory.get(), bytes);
    if (below(4) == 0) {
      const Stream& other = streams_[below(streams_.size())];
      if (other.deviceIndex() == stream.deviceIndex()) recordStream(held.memory, other);
    }
    held_.push_back(std::move(held));
    if (held_.size() > 40) free(below(held_.size()));
  }

  void free(size_t index) {
    std::swap(held_[index], held_.back());
    live_.remove(held_.back().memory.get(), held_.back().bytes);
    held_.pop_back();
  }

  void swap() {
    const std::lock_guard<std::mutex> lock(exchange_.mutex);
    std::swap(exchange_.blocks, held_);
  }

  std::mt19937 random_;
  Live& live_;
  Exchange& exchange_;
  std::vector<Stream> streams_;
  std::vector<Held> held_;
};

void hammer(int threads, int steps, bool faults) {
  Live live;
  Exchange exchange;
  std::atomic<bool> done{false};
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back([&, i] { Worker(i, live, exchange).run(steps); });
  }
  std::thread saboteur([&] {
    for (uint64_t turn = 0; faults && !done; ++turn) {
      fault().out_of_memory_at(1 + turn % 3);
      if (turn % 4 == 0) fault().device_lost(static_cast<int32_t>(turn / 4 % 3));
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      fault().reset();
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
  });
  for (auto& worker : workers) worker.join();
  done = true;
  saboteur.join();
  for (Held& held : exchange.blocks) live.remove(held.memory.get(), held.bytes);
}

TEST(threads_share_the_allocator) {
  const Clean clean;
  hammer(4, 4000, /*faults=*/false);
}

TEST(threads_share_the_allocator_while_the_driver_fails) {
  const Clean clean;
  hammer(4, 4000, /*faults=*/true);
}

TEST(threads_share_the_allocator_while_everything_is_recorded) {
  const Clean clean;
  recordMemoryHistory(true, nullptr, 100, RecordContext::NEVER, true);
  std::thread reader([] {
    for (int i = 0; i < 20; ++i) memoryTraces();
  });
  hammer(4, 1000, /*faults=*/true);
  reader.join();
  recordMemoryHistory(false, nullptr, 1, RecordContext::NEVER, true);
}

} // namespace
} // namespace puone::test
