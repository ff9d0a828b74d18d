// SPDX-License-Identifier: BSD-3-Clause
// Every entry may be called from any thread at any time.
#include <array>
#include <atomic>
#include <random>
#include <string>
#include <thread>

#include "hal/module.h"
#include "sim.h"

using namespace puone::test;

namespace {

void inThreads(int count, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

} // namespace

TEST(the_last_error_is_per_thread) {
  const Sim sim;
  STATUS(hal().device_synchronize(9), PUONE_INVALID_DEVICE);
  std::thread([] { CHECK(std::string(hal().last_error_message()).empty()); }).join();
  CHECK(errorSays("device_synchronize"));
}

TEST(shutdown_waits_for_calls_on_other_threads_and_later_ones_fail) {
  for (int round = 0; round < 20; ++round) {
    const ScopedEnvironment environment({{"PUONE_SIM_DEVICES", "2"}});
    OK(hal().init());
    std::atomic<int> started{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&, i] {
        puone_stream stream = nullptr;
        OK(hal().stream_create(i % 2, 0, &stream));
        ++started;
        // Whatever the call: it succeeds, or there is no driver any more.
        for (puone_status status = PUONE_OK; status == PUONE_OK;) {
          void* block = nullptr;
          status = hal().malloc(i % 2, 4096, &block);
          if (status == PUONE_OK) status = hal().memset_async(block, 1, 4096, stream);
          if (status == PUONE_OK) status = hal().stream_synchronize(stream);
          if (status == PUONE_OK) status = hal().free(block);
          if (status != PUONE_OK && status != PUONE_INVALID_ARGUMENT) {
            STATUS(status, PUONE_INTERNAL);
          }
        }
      });
    }
    while (started < 3) std::this_thread::yield();
    OK(hal().shutdown());
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(threads_share_the_driver_without_disturbing_each_other) {
  Sim sim;
  inThreads(4, [&](int thread) {
    std::mt19937 random(static_cast<unsigned>(thread));
    const int32_t device = thread % 2;
    puone_stream stream = nullptr;
    OK(hal().stream_create(device, -(thread % 3), &stream));
    for (int round = 0; round < 100; ++round) {
      const size_t bytes = 1 + random() % 10000;
      void* block = nullptr;
      OK(hal().malloc(device, bytes, &block));
      puone_event event = nullptr;
      OK(hal().event_create(device, PUONE_EVENT_TIMING, &event));
      OK(hal().memset_async(block, round, bytes, stream));
      OK(hal().event_record(event, stream));
      unsigned char last = 0;
      OK(hal().memcpy_async(
          &last, static_cast<char*>(block) + bytes - 1, 1, PUONE_MEMCPY_DEVICE_TO_HOST, stream));
      OK(hal().event_synchronize(event));
      OK(hal().stream_synchronize(stream));
      CHECK_EQ(last, static_cast<unsigned char>(round));
      OK(hal().event_destroy(event));
      OK(hal().free(block));
    }
    OK(hal().stream_destroy(stream));
  });
}

TEST(threads_look_for_the_compiler_at_once) {
  for (int round = 0; round < 6; ++round) { // each has a compiler of its own
    Sim sim({{"CXX", "c++ -DROUND=" + std::to_string(round)}});
    const void* table = nullptr;
    OK(hal().get_extension(PUONE_MODULE_EXTENSION, PUONE_MODULE_VERSION, &table));
    const auto& modules = *static_cast<const puone_module_api*>(table);
    std::array<puone_module_target, 4> targets{};
    inThreads(4, [&](int thread) {
      puone_module_target& target = targets[static_cast<size_t>(thread)];
      for (int i = 0; i < 3; ++i) {
        target = {};
        target.struct_size = sizeof target;
        OK(modules.target(-1, &target));
      }
    });
    for (const puone_module_target& target : targets) {
      CHECK(std::string(target.identity) == targets[0].identity);
    }
  }
}

TEST(threads_may_submit_to_and_wait_on_one_stream) {
  Sim sim;
  const puone_stream stream = sim.stream();
  const puone_event event = sim.event();
  unsigned char* bytes = sim.memory<unsigned char>(4);
  inThreads(4, [&](int thread) {
    for (int round = 0; round < 200; ++round) {
      OK(hal().memset_async(bytes + thread, round, 1, stream));
      OK(hal().event_record(event, stream));
      if (round % 20 == 0) OK(hal().event_synchronize(event));
      if (round % 30 == 0) OK(hal().device_synchronize(0));
      const puone_status status = hal().stream_query(stream);
      CHECK(status == PUONE_OK || status == PUONE_NOT_READY);
    }
    OK(hal().stream_synchronize(stream));
  });
  for (int thread = 0; thread < 4; ++thread) {
    CHECK_EQ(sim.value(bytes + thread, stream), static_cast<unsigned char>(199));
  }
}

TEST(large_work_on_several_streams_shares_the_cores) {
  Sim sim({{"PUONE_SIM_CORES", "4"}});
  constexpr size_t bytes = size_t{2} << 20;
  inThreads(3, [&](int thread) {
    puone_stream stream = nullptr;
    OK(hal().stream_create(0, 0, &stream));
    void* block = nullptr;
    OK(hal().malloc(0, bytes, &block));
    std::vector<unsigned char> host(bytes);
    for (int round = 0; round < 5; ++round) {
      OK(hal().memset_async(block, thread * 16 + round, bytes, stream));
      OK(hal().memcpy_async(host.data(), block, bytes, PUONE_MEMCPY_DEVICE_TO_HOST, stream));
      OK(hal().stream_synchronize(stream));
      for (size_t i = 0; i < bytes; i += 997) {
        if (!CHECK_EQ(host[i], static_cast<unsigned char>(thread * 16 + round))) break;
      }
    }
  });
}

TEST(threads_race_with_lost_devices_and_faults) {
  Sim sim;
  std::atomic<bool> stop{false};
  std::thread villain([&] {
    for (int i = 0; i < 30; ++i) {
      OK(fault().device_lost(1));
      OK(fault().kernel_error_at(1));
      std::this_thread::yield();
      OK(fault().reset());
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    stop = true;
  });
  inThreads(2, [&](int thread) {
    const puone_stream stream = sim.stream(0);
    puone_stream risky = nullptr;
    while (!stop) {
      if (hal().stream_create(1, 0, &risky) == PUONE_OK) {
        void* block = nullptr;
        if (hal().malloc(1, 256, &block) == PUONE_OK) {
          hal().memset_async(block, thread, 256, risky);
          hal().stream_synchronize(risky);
          OK(hal().free(block));
        }
        OK(hal().stream_destroy(risky));
      }
      hal().stream_synchronize(stream);
    }
  });
  villain.join();
  OK(fault().reset());
}
