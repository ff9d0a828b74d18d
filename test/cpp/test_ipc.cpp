// SPDX-License-Identifier: BSD-3-Clause
// Memory of two processes: exports while work runs, and what the other process may do.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <thread>
#include <vector>

#include "exporter.h"
#include "sim.h"

using namespace puone::test;

TEST(no_write_is_lost_while_a_block_is_exported) {
  Sim sim;
  constexpr size_t piece = 1024; // more than what runs under the scheduler's lock
  constexpr size_t pieces = 4096;
  const puone_stream stream = sim.stream();
  std::vector<unsigned char> seen(piece * pieces);
  for (int round = 0; round < 4; ++round) {
    auto* block = sim.memory<unsigned char>(piece * pieces);
    std::atomic<size_t> queued = 0;
    std::thread writer([&] {
      for (; queued < pieces; ++queued) {
        OK(hal().memset_async(block + queued * piece, 1, piece, stream));
      }
    });
    while (queued < pieces / 8) std::this_thread::yield();
    exported(block);
    writer.join();
    sim.read(seen.data(), block, seen.size(), stream);
    OK(hal().stream_synchronize(stream));
    CHECK(std::all_of(seen.begin(), seen.end(), [](unsigned char byte) { return byte == 1; }));
    OK(hal().free(block));
  }
}

TEST(an_export_does_not_wait_for_host_functions) {
  Sim sim;
  auto* block = sim.memory<unsigned char>(4096);
  Gate gate(sim.stream());
  exported(block); // would not return
  gate.open();
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

TEST(a_handle_with_other_sizes_than_its_file_is_refused) {
  const Exporter exporter(5000, 7);
  Sim sim;
  // Its words have the bytes that were requested, and those of the pages that hold them.
  uint64_t words[sizeof(puone_ipc_memory_handle) / sizeof(uint64_t)];
  static_assert(sizeof words == sizeof(puone_ipc_memory_handle));
  std::memcpy(words, exporter.handle().bytes, sizeof words);
  uint64_t* const pages = std::ranges::find(words, uint64_t{8192});
  uint64_t* const bytes = std::ranges::find(words, uint64_t{5000});
  CHECK(pages != std::end(words));
  CHECK(bytes != std::end(words));
  const auto refused = [&](uint64_t new_pages, uint64_t new_bytes) {
    *pages = new_pages;
    *bytes = new_bytes;
    puone_ipc_memory_handle forged{};
    std::memcpy(forged.bytes, words, sizeof words);
    void* block = nullptr;
    STATUS(ipc().open_memory(0, &forged, &block), PUONE_INVALID_ARGUMENT);
    CHECK(block == nullptr);
  };
  refused(1 << 20, 1 << 20); // beyond the end of the file
  refused(4096, 4096);
  refused(8192, 4096);
  refused(8192, 8193);
  auto* block = static_cast<unsigned char*>(opened(exporter.handle()));
  CHECK_EQ(sim.value(block + 4999, sim.stream()), 7);
  OK(ipc().close_memory(block));
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
