// SPDX-License-Identifier: BSD-3-Clause
// Memory of two processes: exports while work runs, and what the other process may do.
#include <thread>
#include <vector>

#include "exporter.h"
#include "sim.h"

using namespace puone::test;

TEST(work_on_a_block_goes_on_while_it_and_others_are_exported) {
  Sim sim;
  constexpr size_t bytes = 300'000;
  constexpr int rounds = 40;
  std::vector<unsigned char*> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(sim.memory<unsigned char>(bytes));
  std::vector<std::thread> threads;
  std::vector<puone_stream> streams;
  for (unsigned char* block : blocks) {
    const puone_stream stream = streams.emplace_back(sim.stream());
    threads.emplace_back([=] {
      for (int k = 1; k <= rounds; ++k) OK(hal().memset_async(block, k, bytes, stream));
    });
  }
  for (unsigned char* block : blocks) exported(block);
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < blocks.size(); ++i) {
    CHECK_EQ(sim.value(blocks[i], streams[i]), rounds);
    CHECK_EQ(sim.value(blocks[i] + bytes - 1, streams[i]), rounds);
    OK(hal().free(blocks[i]));
  }
}

TEST(an_export_waits_for_no_host_function_and_no_delay) {
  Sim sim;
  auto* block = sim.memory<unsigned char>(4096);
  Gate gate(sim.stream());
  sim.delay(sim.stream(), 3'600'000'000'000);
  exported(block); // would not return
  gate.open();
  OK(fault().device_lost(0)); // drops the delay
  OK(fault().reset());
}

TEST(a_block_of_another_process_is_read_and_written) {
  const Exporter exporter(5000, 7);
  Sim sim;
  const puone_stream stream = sim.stream();
  for (int round = 0; round < 3; ++round) {
    auto* block = static_cast<unsigned char*>(opened(exporter.handle()));
    CHECK_EQ(sim.value(block + 4999, stream), round == 0 ? 7 : round);
    OK(hal().memset_async(block, round + 1, 5000, stream));
    OK(ipc().close_memory(block));
  }
}

TEST(memory_of_another_process_does_not_count_here) {
  const Exporter exporter(1 << 20, 7);
  Sim sim;
  uint64_t before = 0;
  uint64_t after = 0;
  uint64_t total = 0;
  OK(hal().device_memory_info(0, &before, &total));
  void* block = opened(exporter.handle());
  OK(hal().device_memory_info(0, &after, &total));
  CHECK_EQ(after, before);
  OK(ipc().close_memory(block));
  OK(hal().device_memory_info(0, &after, &total));
  CHECK_EQ(after, before);
}

TEST(shutdown_releases_what_was_exported_and_opened) {
  const Exporter exporter(5000, 7);
  for (int round = 0; round < 3; ++round) {
    Sim sim;
    exported(sim.memory<unsigned char>(5000));
    opened(exporter.handle());
  }
}
